//! The Linux device.
//!
//! Words are those of a 64-bit kernel, and so are the request numbers, whatever this program is
//! compiled for.

mod helpers;
mod probe;
mod symbols;
mod uring;

pub use helpers::{Gate, Remote, pass_descriptor, with_console_off};
pub use probe::probe;
pub use symbols::{Symbols, symbols};
pub use uring::Ring;

use crate::errno::{Errno, Result};
use crate::raw::Map;
use kcov_sys::linux as sys;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::ffi::{c_int, c_ulong};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

pub use sys::{KCOV_TRACE_CMP, KCOV_TRACE_PC};

/// Where the device is if nobody says otherwise.
pub const DEVICE: &str = sys::KCOV_PATH;

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

    /// Issues any request.
    pub fn request(&self, number: u32, argument: c_ulong) -> Result<()> {
        let fd = self.fd.as_raw_fd();
        // SAFETY: the driver writes nothing through an argument, at most it reads a structure,
        // and refuses an address that it cannot read.
        let returned = unsafe { libc::ioctl(fd, number as _, argument) };
        Errno::check(returned.into()).map(drop)
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

    /// `KCOV_REMOTE_ENABLE` with the structure at that address.
    pub fn remote_enable_at(&self, address: usize) -> Result<()> {
        self.request(sys::KCOV_REMOTE_ENABLE, address as c_ulong)
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
}

/// A request's argument. A 32-bit program cannot pass all values.
fn argument(value: u64) -> c_ulong {
    c_ulong::try_from(value).expect("the argument fits this program's long")
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
