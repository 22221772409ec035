//! The Linux device.
//!
//! Words are those of a 64-bit kernel, and so are the request numbers, whatever this program is
//! compiled for.

mod bluetooth;
mod faults;
mod gadget;
mod helpers;
mod loopback;
mod meeting;
mod module;
mod netlink;
mod nfc;
mod probe;
mod proposed;
mod radio;
mod symbols;
mod uring;
mod usbip;
mod userfault;
mod vhost;
mod vring;

pub use bluetooth::Bluetooth;
pub use faults::Faults;
pub use gadget::Gadget;
pub use helpers::{
    Remote, areas_of, areas_of_size, free_memory, kernel_log, kernel_memory_lost, sleeping_thread,
    vmalloc_used, with_console_off,
};
pub use loopback::Loopback;
pub use meeting::{Side, delay, pin, race};
pub use module::Module;
pub use netlink::Netlink;
pub use nfc::Nfc;
pub use probe::probe;
pub use radio::Radio;
pub use symbols::{Symbols, symbols};
pub use uring::Ring;
pub use usbip::Usbip;
pub use userfault::Absent;
pub use vhost::Vhost;
pub use vring::{Chain, Vring};

use crate::errno::{Errno, Result};
use crate::raw::{Device, Map, page_size};
use kcov_sys::linux as sys;
use libc::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use std::ffi::c_ulong;
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

pub use sys::{KCOV_TRACE_CMP, KCOV_TRACE_PC};

/// Where the device is if nobody says otherwise.
pub const DEVICE: &str = sys::KCOV_PATH;

/// The system call that gets traced, by its number: the C library may do more than the call.
pub(crate) fn refused_read() -> Result<()> {
    // SAFETY: the kernel refuses the descriptor before it looks at the buffer.
    let returned = unsafe { libc::syscall(libc::SYS_read, -1, null_mut::<u8>(), 0) };
    Errno::check(returned).map(drop)
}

impl Device {
    /// Issues any request.
    ///
    /// # Panics
    ///
    /// If it succeeds with anything but 0.
    pub fn request(&self, number: u32, argument: c_ulong) -> Result<()> {
        let fd = self.as_raw_fd();
        // SAFETY: the driver writes nothing through an argument, at most it reads a structure,
        // and refuses an address that it cannot read.
        let returned = unsafe { libc::ioctl(fd, number as _, argument) };
        // What is done returns 0 and nothing else.
        Errno::check(returned).map(|returned| assert_eq!(returned, 0, "request {number:#x}"))
    }

    /// `KCOV_INIT_TRACE` with that size in words.
    pub fn init_trace(&self, words: u64) -> Result<()> {
        self.request(sys::KCOV_INIT_TRACE64, argument(words))
    }

    /// `KCOV_ENABLE` with that mode.
    pub fn enable(&self, mode: impl Into<u64>) -> Result<()> {
        self.request(sys::KCOV_ENABLE, argument(mode.into()))
    }

    /// `KCOV_DISABLE`.
    pub fn disable(&self) -> Result<()> {
        self.request(sys::KCOV_DISABLE, 0)
    }

    /// `KCOV_DISABLE` with an argument.
    pub fn disable_with(&self, unused: u64) -> Result<()> {
        self.request(sys::KCOV_DISABLE, argument(unused))
    }

    /// `KCOV_REMOTE_ENABLE`.
    pub fn remote_enable(&self, remote: &Remote) -> Result<()> {
        let structure = remote.structure();
        let address = std::ptr::from_ref(&structure).expose_provenance();
        self.remote_enable_at(address)
    }

    /// `KCOV_UNIQUE_ENABLE`, which is proposed, with that size of the bitmap in words.
    pub fn unique_enable(&self, words: u64) -> Result<()> {
        self.request(sys::proposed::KCOV_UNIQUE_ENABLE, argument(words))
    }

    /// `KCOV_RESET_TRACE`, which is proposed.
    pub fn reset_trace(&self) -> Result<()> {
        self.request(sys::proposed::KCOV_RESET_TRACE, 0)
    }

    /// `KCOV_RESET_TRACE` with an argument.
    pub fn reset_trace_with(&self, unused: u64) -> Result<()> {
        self.request(sys::proposed::KCOV_RESET_TRACE, argument(unused))
    }

    /// `ftruncate` to that many bytes.
    pub fn truncate(&self, bytes: usize) -> Result<()> {
        let bytes = i64::try_from(bytes).expect("a size");
        Ok(nix::unistd::ftruncate(self, bytes)?)
    }

    /// `KCOV_REMOTE_ENABLE` with the structure at that address.
    pub fn remote_enable_at(&self, address: usize) -> Result<()> {
        self.request(sys::KCOV_REMOTE_ENABLE, address as c_ulong)
    }
}

impl Map {
    /// `mremap` with these very arguments.
    pub fn remap(&self, bytes: usize, flags: i32) -> Result<()> {
        // SAFETY: the range is that of the mapping, which is accessed through `self` only. Were it
        // moved, which every kernel refuses, or accessed behind a new end, the process would end.
        let place = unsafe { libc::mremap(self.address(), self.bytes(), bytes, flags) };
        if place == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(()) }
    }

    /// A page of zeroes, the address behind it, where nothing can be read, and what holds both.
    ///
    /// What is behind was never accessible: User-Mode Linux would read on what was once there.
    pub fn page_before_hole() -> Result<(Map, usize)> {
        let (prot, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
        let pages = Map::new(&-1, 2 * page_size(), 0, prot, flags)?;
        pages.protect_from(page_size())?;
        let hole = pages.address().expose_provenance() + page_size();
        Ok((pages, hole))
    }
}

/// A request's argument. A 32-bit program cannot pass all values.
fn argument(value: u64) -> c_ulong {
    c_ulong::try_from(value).expect("the argument fits this program's long")
}
