//! An open device: what all systems have in common. Its requests are in the system's directory.

use crate::errno::{Errno, Result};
use crate::raw::Map;
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

/// An open device.
#[derive(Debug)]
pub struct Device {
    fd: OwnedFd,
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
        Device { fd }
    }
}

impl Device {
    /// Opens the file, for reading and writing.
    pub fn open(path: &Path) -> Result<Device> {
        Device::open_with(path, OFlag::O_RDWR)
    }

    /// Opens the file with these flags. Programs that this one executes do not inherit it.
    pub fn open_with(path: &Path, flags: OFlag) -> Result<Device> {
        let fd = nix::fcntl::open(path, flags | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Device { fd })
    }

    /// Another descriptor of the same open file.
    pub fn duplicate(&self) -> Result<Device> {
        Ok(Device { fd: self.fd.try_clone().map_err(|_| Errno::last())? })
    }

    /// Closes the descriptor, with the result of that.
    pub fn close(self) -> Result<()> {
        Ok(nix::unistd::close(self.fd)?)
    }

    /// Maps that many words as the document does: shared, readable and writable, from offset 0.
    pub fn map(&self, words: u64) -> Result<Map> {
        let bytes = usize::try_from(words).expect("the size fits") * size_of::<u64>();
        self.map_with(bytes, 0, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)
    }

    /// Maps with these very arguments.
    pub fn map_with(&self, bytes: usize, offset: i64, prot: c_int, flags: c_int) -> Result<Map> {
        Map::new(&self.fd, bytes, offset, prot, flags)
    }

    /// Sends a descriptor of the same open file to whoever has the other end of the socket.
    pub fn send(&self, socket: RawFd) {
        let fds = [self.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&fds)];
        let sent = [IoSlice::new(b"x")];
        sendmsg::<()>(socket, &sent, &rights, MsgFlags::empty(), None).expect("sendmsg");
    }

    /// Takes the descriptor that was sent.
    #[must_use]
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
        // SAFETY: the kernel has just made this descriptor for this process, nobody else owns it.
        Device::from(unsafe { OwnedFd::from_raw_fd(arrived[0]) })
    }
}

/// Sends a device through a socket, and returns what arrives.
#[must_use]
pub fn pass_descriptor(device: &Device) -> Device {
    let (left, right) =
        socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::empty()).expect("a pair");
    device.send(left.as_raw_fd());
    Device::receive(right.as_raw_fd())
}

/// Bytes of a page.
#[must_use]
pub fn page_size() -> usize {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    usize::try_from(size.expect("sysconf").expect("a page size")).expect("it fits")
}

/// Words of a page.
#[must_use]
pub fn page_words() -> u64 {
    (page_size() / size_of::<u64>()) as u64
}
