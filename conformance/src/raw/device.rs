//! An open device, as far as the systems agree. The requests are in the system's directory.

use crate::errno::{Errno, Result};
use crate::raw::{Map, READ_WRITE, Width, word_bytes};
use nix::fcntl::OFlag;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use nix::sys::stat::Mode;
use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::Path;

#[derive(Debug)]
pub struct Device {
    fd: OwnedFd,
    pub(crate) width: Width,
}

impl AsRawFd for Device {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<OwnedFd> for Device {
    fn from(fd: OwnedFd) -> Device {
        Device { fd, width: Width::new(word_bytes()) }
    }
}

impl Device {
    pub fn open(path: &Path) -> Result<Device> {
        Device::open_with(path, OFlag::O_RDWR)
    }

    /// Opens the file with these flags, close-on-exec.
    pub fn open_with(path: &Path, flags: OFlag) -> Result<Device> {
        let fd = nix::fcntl::open(path, flags | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Device::from(fd))
    }

    /// Returns another file descriptor of the same open file.
    pub fn duplicate(&self) -> Result<Device> {
        let fd = self.fd.try_clone().map_err(|_| Errno::last())?;
        Ok(Device { fd, width: self.width.clone() })
    }

    pub fn close(self) -> Result<()> {
        Ok(nix::unistd::close(self.fd)?)
    }

    /// Maps this many words the documented way: shared, readable and writable, from offset 0.
    pub fn map(&self, words: u64) -> Result<Map> {
        let bytes = usize::try_from(words).expect("the size fits") * word_bytes();
        self.map_with(bytes, 0, READ_WRITE, libc::MAP_SHARED)
    }

    pub fn map_with(&self, bytes: usize, offset: i64, prot: c_int, flags: c_int) -> Result<Map> {
        Ok(Map::new(&self.fd, bytes, offset, prot, flags)?.with_width(&self.width))
    }

    /// Sends a file descriptor of the same open file to the other end of the socket.
    pub fn send(&self, socket: RawFd) {
        let fds = [self.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&fds)];
        let sent = [IoSlice::new(b"x")];
        sendmsg::<()>(socket, &sent, &rights, MsgFlags::empty(), None).expect("sendmsg");
    }

    /// Receives the file descriptor that [`send`](Self::send) sent.
    pub fn receive(socket: RawFd) -> Device {
        let mut byte = [0];
        let mut received = [IoSliceMut::new(&mut byte)];
        let mut space = nix::cmsg_space!([i32; 1]);
        let message = recvmsg::<()>(socket, &mut received, Some(&mut space), MsgFlags::empty());
        let message = message.expect("recvmsg");
        let mut messages = message.cmsgs().expect("control messages");
        let Some(ControlMessageOwned::ScmRights(arrived)) = messages.next() else {
            panic!("no descriptor has arrived");
        };
        // SAFETY: the kernel has just installed this file descriptor, so nothing else owns it.
        Device::from(unsafe { OwnedFd::from_raw_fd(arrived[0]) })
    }
}

/// Sends a device through a socket and returns the one received.
pub fn pass_descriptor(device: &Device) -> Device {
    let (left, right) =
        socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::empty()).expect("a pair");
    device.send(left.as_raw_fd());
    Device::receive(right.as_raw_fd())
}

pub fn page_size() -> usize {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    usize::try_from(size.expect("sysconf").expect("a page size")).expect("it fits")
}

pub fn page_words() -> u64 {
    (page_size() / word_bytes()) as u64
}
