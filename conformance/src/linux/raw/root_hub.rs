//! The root hub of the dummy host controller's bus. Its driver answers a control request at once,
//! and a softirq, which is a remote section, hands the answer over.

use super::gadget::{Gadget, root_hub};
use crate::errno::{Errno, Result};
use nix::fcntl::OFlag;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::stat::Mode;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::ptr::null_mut;

/// `struct usbdevfs_urb`.
#[repr(C)]
struct Urb {
    kind: u8,
    endpoint: u8,
    status: i32,
    flags: u32,
    buffer: *mut u8,
    length: i32,
    actual_length: i32,
    frame: i32,
    packets: i32,
    errors: i32,
    signal: u32,
    context: *mut u8,
}

const LETTER: u32 = b'U' as u32;
const USBDEVFS_SUBMITURB: libc::Ioctl = libc::_IOR::<Urb>(LETTER, 10);
const USBDEVFS_REAPURB: libc::Ioctl = libc::_IOW::<*mut Urb>(LETTER, 12);
const USBDEVFS_URB_TYPE_CONTROL: u8 = 2;
/// `USB_REQ_GET_STATUS` of the device, with two bytes of answer, and room for these.
const GET_STATUS: [u8; 10] = [0x80, 0, 0, 0, 0, 0, 2, 0, 0, 0];

/// The open hub. While it is open, it does not fall asleep.
#[derive(Debug)]
pub struct RootHub {
    fd: OwnedFd,
    socket: UnixDatagram,
}

impl RootHub {
    /// Whether there is one.
    pub fn present() -> bool {
        fs::exists("/sys/devices/platform/dummy_hcd.0").is_ok_and(|there| there)
    }

    /// Opens the hub, and waits until its driver is done with it.
    pub fn open() -> Result<RootHub> {
        let path = format!("/dev/bus/usb/{:03}/001", Gadget::bus());
        let fd = nix::fcntl::open(path.as_str(), OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
        fs::read(root_hub().join("bConfigurationValue")).expect("the hub has a configuration");
        Ok(RootHub { fd, socket: UnixDatagram::unbound().expect("a socket") })
    }

    /// Makes a request. Returns when a softirq has completed it, usually in the middle of a system
    /// call of this thread.
    pub fn work(&self) -> Result<()> {
        let mut buffer = GET_STATUS;
        let mut urb = Urb {
            kind: USBDEVFS_URB_TYPE_CONTROL,
            endpoint: 0,
            status: 0,
            flags: 0,
            buffer: buffer.as_mut_ptr(),
            length: GET_STATUS.len() as i32,
            actual_length: 0,
            frame: 0,
            packets: 0,
            errors: 0,
            signal: 0,
            context: null_mut(),
        };
        self.request(USBDEVFS_SUBMITURB, &raw mut urb)?;
        // The call unlocks the socket, which runs the pending softirqs.
        setsockopt(&self.socket, sockopt::RcvBuf, &(1 << 16))?;
        let mut completed: *mut Urb = null_mut();
        self.request(USBDEVFS_REAPURB, &raw mut completed)
    }

    /// Keeps the kernel's thread for softirqs from running before this thread sleeps. So all work of
    /// the hub completes in this thread.
    pub fn complete_here() {
        let priority: i32 = 1;
        let number = libc::SYS_sched_setscheduler;
        // SAFETY: the structure that the call reads has this number as its only field.
        let returned = unsafe { libc::syscall(number, 0, libc::SCHED_FIFO, &raw const priority) };
        Errno::check(returned).expect("a priority");
    }

    fn request<T>(&self, number: libc::Ioctl, argument: *mut T) -> Result<()> {
        // SAFETY: the argument is what the request reads or writes. The kernel writes to the
        // request block and its buffer when the block is reaped, before `work` returns.
        let returned = unsafe { libc::ioctl(self.fd.as_raw_fd(), number, argument) };
        Errno::check(returned).map(drop)
    }
}
