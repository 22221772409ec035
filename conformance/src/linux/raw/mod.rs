//! The Linux device.
//!
//! Words and request numbers are those of a 64-bit kernel, whatever this program is compiled for.

mod helpers;
mod meeting;
mod probe;
mod symbols;
mod uring;
mod usb;
mod userfault;
mod vhost;
mod wireless;

pub use helpers::*;
pub use meeting::*;
pub use probe::*;
pub use symbols::*;
pub use uring::*;
pub use usb::*;
pub use userfault::*;
pub use vhost::*;
pub use wireless::*;

use crate::errno::{Errno, Result};
use crate::raw::sites::{HOOK, sites};
use crate::raw::*;
use kcov_sys::linux as sys;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, pipe, read, write};
use std::collections::HashSet;
use std::ffi::c_ulong;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

pub use sys::{KCOV_TRACE_CMP, KCOV_TRACE_PC};

pub const DEVICE: &str = sys::KCOV_PATH;

/// All modes of upstream kernels.
pub const MODES: &[u32] = &[KCOV_TRACE_PC, KCOV_TRACE_CMP];

/// The size in words of a buffer that holds all records of an exec.
pub const EXEC_WORDS: u64 = 1 << 20;

/// The greatest size of a buffer, in words.
pub fn max_words() -> u64 {
    sys::kcov_init_trace_max(word_bytes() as u64)
}

/// The bytes of a word of the kernel, its `long`. It prints addresses with two digits for each.
pub fn word_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        if size_of::<c_ulong>() == 8 {
            return 8;
        }
        let symbols = File::open("/proc/kallsyms").map(BufReader::new);
        let first = symbols.ok().and_then(|symbols| symbols.lines().next()?.ok());
        first.and_then(|line| Some(line.split_once(' ')?.0.len() / 2)).unwrap_or(8)
    })
}

/// Enables a device whose enabling thread has ended. The kernel has freed the device at once.
pub fn enable_freed(device: &Device, mode: u32) -> Result<()> {
    device.enable(mode)
}

/// The number of `KCOV_INIT_TRACE`, which holds the size of the kernel's `long`.
pub(crate) fn init_trace_request() -> u32 {
    if word_bytes() == 8 { sys::KCOV_INIT_TRACE64 } else { sys::KCOV_INIT_TRACE32 }
}

/// Makes the traced system call by number, since the C library's wrapper may do more.
pub(crate) fn refused_read() -> Result<()> {
    // SAFETY: the kernel rejects the file descriptor before it looks at the buffer.
    let returned = unsafe { libc::syscall(libc::SYS_read, -1, null_mut::<u8>(), 0) };
    Errno::check(returned).map(drop)
}

impl Device {
    pub fn request(&self, number: u32, argument: c_ulong) -> Result<()> {
        let fd = self.as_raw_fd();
        // SAFETY: the driver never writes through the argument. At most it reads a structure, and
        // it returns EFAULT for an address that it cannot read.
        let returned = unsafe { libc::ioctl(fd, number as _, argument) };
        // A successful request always returns 0.
        Errno::check(returned).map(|returned| assert_eq!(returned, 0, "request {number:#x}"))
    }

    /// `KCOV_INIT_TRACE` with this size in words.
    pub fn init_trace(&self, words: u64) -> Result<()> {
        self.request(init_trace_request(), argument(words))
    }

    pub fn enable(&self, mode: impl Into<u64>) -> Result<()> {
        let mode = mode.into();
        self.request(sys::KCOV_ENABLE, argument(mode))?;
        self.collects(mode);
        Ok(())
    }

    /// Comparison records use 64-bit words on every kernel.
    fn collects(&self, mode: u64) {
        let compares = mode == u64::from(KCOV_TRACE_CMP);
        self.width.set(if compares { 8 } else { word_bytes() });
    }

    pub fn disable(&self) -> Result<()> {
        self.request(sys::KCOV_DISABLE, 0)
    }

    pub fn disable_with(&self, unused: u64) -> Result<()> {
        self.request(sys::KCOV_DISABLE, argument(unused))
    }

    pub fn remote_enable(&self, remote: &Remote) -> Result<()> {
        let structure = remote.structure();
        let address = std::ptr::from_ref(&structure).expose_provenance();
        self.remote_enable_at(address)?;
        self.collects(structure.trace_mode.into());
        Ok(())
    }

    /// `KCOV_UNIQUE_ENABLE`, a proposed request, with this size of the bitmap in words.
    pub fn unique_enable(&self, words: u64) -> Result<()> {
        self.request(sys::proposed::KCOV_UNIQUE_ENABLE, argument(words))
    }

    pub fn reset_trace(&self) -> Result<()> {
        self.request(sys::proposed::KCOV_RESET_TRACE, 0)
    }

    pub fn reset_trace_with(&self, unused: u64) -> Result<()> {
        self.request(sys::proposed::KCOV_RESET_TRACE, argument(unused))
    }

    /// Maps the second area of a device of this size, which a proposal has.
    pub fn map_edges(&self, words: u64) -> Result<Map> {
        let bytes = usize::try_from(words).expect("the size fits") * 8;
        let offset = i64::try_from(bytes).expect("the offset fits");
        self.map_with(bytes, offset, READ_WRITE, libc::MAP_SHARED)
    }

    pub fn truncate(&self, bytes: usize) -> Result<()> {
        let bytes = libc::off_t::try_from(bytes).expect("a size");
        Ok(nix::unistd::ftruncate(self, bytes)?)
    }

    /// `KCOV_REMOTE_ENABLE` with the structure at this address.
    pub fn remote_enable_at(&self, address: usize) -> Result<()> {
        self.request(sys::KCOV_REMOTE_ENABLE, address as c_ulong)
    }
}

impl Map {
    pub fn store32(&self, byte: usize, value: u32) {
        self.half(byte).store(value, Ordering::Release);
    }
    pub fn remap(&self, bytes: usize, flags: i32) -> Result<()> {
        // SAFETY: only `self` uses the mapping. If the kernel moved or shrank it, which no kernel
        // does, the next access would end the process.
        let place = unsafe { libc::mremap(self.address(), self.bytes(), bytes, flags) };
        if place == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(()) }
    }

    /// Moves the mapping to the place of another one of its size, which it replaces.
    pub fn move_to(self, place: Map) -> Result<Map> {
        assert_eq!(self.bytes(), place.bytes(), "the same size");
        let (bytes, flags) = (self.bytes(), libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
        // SAFETY: this function owns both mappings, so nothing else uses either.
        let moved = unsafe { libc::mremap(self.address(), bytes, bytes, flags, place.address()) };
        if moved == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        // Its old place is unmapped.
        std::mem::forget(self);
        Ok(place)
    }

    /// Puts the first page into a pipe this many times, and returns the end to read from. The pipe
    /// holds the page itself, so each page's worth of bytes is as it is when it is read, even if the
    /// mapping is gone by then.
    pub fn first_page_in_pipe(&self, times: usize) -> Result<File> {
        let (reader, writer) = nix::unistd::pipe()?;
        let page = libc::iovec { iov_base: self.address(), iov_len: page_size() };
        for _ in 0..times {
            // SAFETY: the range is mapped, and the kernel takes a reference to the page.
            let given = unsafe { libc::vmsplice(writer.as_raw_fd(), &raw const page, 1, 0) };
            let given = Errno::check(given)?;
            assert_eq!(usize::try_from(given), Ok(page_size()), "a whole page");
        }
        Ok(reader.into())
    }

    /// Maps a page of zeroes before an inaccessible one. Returns both and the latter's address.
    ///
    /// It was never accessible: User-Mode Linux could still read its old contents.
    pub fn page_before_hole() -> Result<(Map, usize)> {
        let pages = Map::anonymous(2 * page_size())?;
        pages.protect_from(page_size(), libc::PROT_NONE)?;
        let hole = pages.address().expose_provenance() + page_size();
        Ok((pages, hole))
    }
}

/// Converts a request's argument. A 32-bit program cannot pass every value.
fn argument(value: u64) -> c_ulong {
    c_ulong::try_from(value).expect("the argument fits this program's long")
}
