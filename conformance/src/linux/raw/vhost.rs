//! A vhost device. Its worker is a kernel thread that serves one owner.
//!
//! The worker runs one remote section per work item. Kicking a queue queues such an item, even if
//! the queue has neither memory nor a backend: the handler finds that out in recorded code.

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
const VHOST_RESET_OWNER: libc::Ioctl = libc::_IO(LETTER, 0x02);
const VHOST_SET_LOG_FD: libc::Ioctl = libc::_IOW::<i32>(LETTER, 0x07);
const VHOST_SET_VRING_KICK: libc::Ioctl = libc::_IOW::<VringFile>(LETTER, 0x20);
/// The guest's receive queue.
const RECEIVE: u32 = 0;
/// The guest's transmit queue.
pub(super) const TRANSMIT: u32 = 1;

/// A network device owned by this process. Its worker ends with it.
#[derive(Debug)]
pub struct Vhost {
    fd: OwnedFd,
    kick: Arc<EventFd>,
}

impl Vhost {
    /// Opens the device. Without an owner it has no worker.
    pub fn open() -> Result<OwnedFd> {
        let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
        Ok(nix::fcntl::open("/dev/vhost-net", flags, Mode::empty())?)
    }

    /// Opens the device and becomes its owner.
    pub fn new() -> Result<Vhost> {
        Vhost::kicked_by(Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?), &[TRANSMIT])
    }

    /// Opens the device and becomes its owner. One kick queues work of both queues at once.
    pub fn of_both_queues() -> Result<Vhost> {
        let kick = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?);
        Vhost::kicked_by(kick, &[RECEIVE, TRANSMIT])
    }

    /// Creates another device. One kick of the first kicks both queues of the second too.
    pub fn beside(&self) -> Result<Vhost> {
        Vhost::kicked_by(Arc::clone(&self.kick), &[RECEIVE, TRANSMIT])
    }

    fn kicked_by(kick: Arc<EventFd>, queues: &[u32]) -> Result<Vhost> {
        let vhost = Vhost { fd: Vhost::open()?, kick };
        vhost.own(queues)?;
        Ok(vhost)
    }

    fn own(&self, queues: &[u32]) -> Result<()> {
        self.request(VHOST_SET_OWNER, std::ptr::null::<u8>())?;
        for &index in queues {
            let kick = VringFile { index, fd: self.kick.as_raw_fd() };
            self.request(VHOST_SET_VRING_KICK, &raw const kick)?;
        }
        Ok(())
    }

    /// Resets the owner and sets it again, which creates a new worker.
    pub fn own_again(&self) -> Result<()> {
        self.request(VHOST_RESET_OWNER, std::ptr::null::<u8>())?;
        self.own(&[TRANSMIT])
    }

    /// Kicks the queue and waits until the resulting section has ended. See [`flush`](Self::flush).
    pub fn work(&self) {
        self.kick();
        self.flush();
    }

    /// Kicks the queue.
    pub fn kick(&self) {
        self.kick.write(1).expect("the queue is kicked");
    }

    /// Waits until the sections of all queued work have ended. The flush is a section of its own,
    /// which on several processors may end a little later.
    pub fn flush(&self) {
        // Every request about the whole device waits for the worker to finish the queued work.
        let none: RawFd = -1;
        self.request(VHOST_SET_LOG_FD, &raw const none).expect("the log is taken away");
    }

    pub(super) fn request<T>(&self, number: libc::Ioctl, argument: *const T) -> Result<()> {
        // SAFETY: the argument is the structure that the request reads, or null if it reads none.
        let returned = unsafe { libc::ioctl(self.fd.as_raw_fd(), number, argument) };
        Errno::check(returned).map(drop)
    }
}
