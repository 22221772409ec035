//! The NetBSD device: requests by pointer.

mod probe;
mod vhci;

pub use probe::probe;
pub use vhci::Controller;

use crate::errno::{Errno, Result};
use crate::raw::Device;
use kcov_sys::netbsd as sys;
use std::ffi::{c_int, c_long};
use std::os::fd::AsRawFd as _;
use std::ptr::{from_ref, null_mut};

/// The mode that records nothing.
pub const KCOV_MODE_NONE: u32 = sys::KCOV_MODE_NONE as u32;
/// The mode of program counters, under its Linux name.
pub const KCOV_TRACE_PC: u32 = sys::KCOV_MODE_TRACE_PC as u32;
/// The mode of comparisons, under its Linux name.
pub const KCOV_TRACE_CMP: u32 = sys::KCOV_MODE_TRACE_CMP as u32;

/// Where the device is if nobody says otherwise.
pub const DEVICE: &str = sys::KCOV_PATH;

unsafe extern "C" {
    /// The `libc` crate does not declare it for this system.
    fn syscall(number: c_int, ...) -> c_int;
}

/// `SYS_read` (`sys/sys/syscall.h`).
const READ: c_int = 3;

/// The system call that gets traced, by its number: the C library may do more than the call.
pub(crate) fn refused_read() -> Result<()> {
    let (fd, count): (c_long, c_long) = (-1, 0);
    // SAFETY: the kernel refuses the descriptor before it looks at the buffer.
    let returned = unsafe { syscall(READ, fd, null_mut::<u8>(), count) };
    Errno::check(returned).map(drop)
}

/// Runs `body`: this kernel has nothing to say that would have to be kept from the console.
pub fn with_console_off<T>(body: impl FnOnce() -> T) -> T {
    body()
}

/// What to attach a device to.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The subsystem.
    pub subsystem: u64,
    /// The id in the subsystem.
    pub id: u64,
}

impl Source {
    /// A port of a virtual USB host controller.
    #[must_use]
    pub fn vhci(bus: u64, port: u64) -> Source {
        Source { subsystem: sys::KCOV_REMOTE_VHCI, id: sys::kcov_remote_vhci_id(bus, port) }
    }
}

impl Device {
    /// Issues any request. The address is that of what the request reads.
    ///
    /// # Panics
    ///
    /// If it succeeds with anything but 0.
    pub fn request(&self, number: u32, address: usize) -> Result<()> {
        let fd = self.as_raw_fd();
        // SAFETY: no request of the driver writes through its argument, and the kernel refuses an
        // address that it cannot read.
        let returned = unsafe { libc::ioctl(fd, number.into(), address) };
        // What is done returns 0 and nothing else.
        Errno::check(returned).map(|returned| assert_eq!(returned, 0, "request {number:#x}"))
    }

    fn request_with<T>(&self, number: u32, argument: &T) -> Result<()> {
        self.request(number, from_ref(argument).expose_provenance())
    }

    /// `KCOV_IOC_SETBUFSIZE` with that size in entries; the name is that of the request on Linux.
    pub fn init_trace(&self, entries: u64) -> Result<()> {
        self.request_with(sys::KCOV_IOC_SETBUFSIZE, &entries)
    }

    /// `KCOV_IOC_ENABLE` with that mode.
    pub fn enable(&self, mode: u32) -> Result<()> {
        self.request_with(sys::KCOV_IOC_ENABLE, &mode)
    }

    /// `KCOV_IOC_DISABLE`.
    pub fn disable(&self) -> Result<()> {
        self.request(sys::KCOV_IOC_DISABLE, 0)
    }

    /// `KCOV_IOC_REMOTE_ATTACH`.
    pub fn attach(&self, source: Source) -> Result<()> {
        let Source { subsystem, id } = source;
        self.request_with(
            sys::KCOV_IOC_REMOTE_ATTACH,
            &sys::kcov_ioc_remote_attach { subsystem, id },
        )
    }

    /// `KCOV_IOC_REMOTE_DETACH`.
    pub fn detach(&self) -> Result<()> {
        self.request(sys::KCOV_IOC_REMOTE_DETACH, 0)
    }
}
