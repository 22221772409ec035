//! A vhost device, whose worker is a kernel thread that serves one owner.
//!
//! The worker runs one section that is marked for remote collection per piece of work. A kick of
//! a queue is such work, also if the queue has neither memory nor a backend: its handler finds
//! that out, in code that is recorded.

use crate::errno::{Errno, Result};
use nix::fcntl::OFlag;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::stat::Mode;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;

/// `struct vhost_vring_file`.
#[repr(C)]
pub(super) struct VringFile {
    pub(super) index: u32,
    pub(super) fd: RawFd,
}

const LETTER: u32 = 0xaf;
const VHOST_SET_OWNER: libc::Ioctl = libc::_IO(LETTER, 0x01);
const VHOST_SET_LOG_FD: libc::Ioctl = libc::_IOW::<i32>(LETTER, 0x07);
const VHOST_SET_VRING_KICK: libc::Ioctl = libc::_IOW::<VringFile>(LETTER, 0x20);
/// The queue that the guest receives with.
const RECEIVE: u32 = 0;
/// The queue that the guest sends with.
pub(super) const TRANSMIT: u32 = 1;

/// A network device that this process owns; its worker ends with it.
#[derive(Debug)]
pub struct Vhost {
    fd: OwnedFd,
    kick: Arc<EventFd>,
}

impl Vhost {
    /// Opens the device. It has no owner, so no worker.
    pub fn open() -> Result<OwnedFd> {
        let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
        Ok(nix::fcntl::open("/dev/vhost-net", flags, Mode::empty())?)
    }

    /// Opens the device and becomes its owner.
    pub fn new() -> Result<Vhost> {
        Vhost::kicked_by(Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?), &[TRANSMIT])
    }

    /// Another device. Who kicks the one kicks both queues of the other.
    pub fn beside(&self) -> Result<Vhost> {
        Vhost::kicked_by(Arc::clone(&self.kick), &[RECEIVE, TRANSMIT])
    }

    fn kicked_by(kick: Arc<EventFd>, queues: &[u32]) -> Result<Vhost> {
        let vhost = Vhost { fd: Vhost::open()?, kick };
        vhost.request(VHOST_SET_OWNER, std::ptr::null::<u8>())?;
        for &index in queues {
            let kick = VringFile { index, fd: vhost.kick.as_raw_fd() };
            vhost.request(VHOST_SET_VRING_KICK, &raw const kick)?;
        }
        Ok(vhost)
    }

    /// Kicks the queue, and waits until the section of that work has ended.
    pub fn work(&self) {
        self.kick();
        self.flush();
    }

    /// Kicks the queue.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn kick(&self) {
        self.kick.write(1).expect("the queue is kicked");
    }

    /// Waits until the sections of all that was queued have ended, its own too.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn flush(&self) {
        // Any request about the whole device waits until its worker has done what was queued.
        let none: RawFd = -1;
        self.request(VHOST_SET_LOG_FD, &raw const none).expect("the log is taken away");
    }

    pub(super) fn request<T>(&self, number: libc::Ioctl, argument: *const T) -> Result<()> {
        // SAFETY: the argument is what the request reads, or null where it reads nothing.
        let returned = unsafe { libc::ioctl(self.fd.as_raw_fd(), number, argument) };
        Errno::check(returned).map(drop)
    }
}
