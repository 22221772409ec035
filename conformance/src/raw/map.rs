//! A mapping, of the device's buffer before all.

use crate::errno::{Errno, Result};
use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A mapping, in words of the kernel. Words are loaded and stored atomically: the kernel writes
/// them whenever it likes.
#[derive(Debug)]
pub struct Map {
    base: NonNull<c_void>,
    bytes: usize,
    writable: bool,
}

// SAFETY: the mapping belongs to no thread, and its words are accessed atomically only.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// `mmap` with these very arguments, at an address of the kernel's choice.
    pub fn new(fd: &impl AsRawFd, bytes: usize, offset: i64, prot: i32, flags: i32) -> Result<Map> {
        let fd = fd.as_raw_fd();
        let offset = libc::off_t::try_from(offset).expect("the offset fits");
        // SAFETY: without MAP_FIXED the kernel picks an address that nothing else uses.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, prot, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let base = NonNull::new(base).expect("the kernel does not choose address zero");
        Ok(Map { base, bytes, writable: prot & libc::PROT_WRITE != 0 })
    }

    /// The same with the rest of its last page, which is mapped too.
    #[must_use]
    pub fn with_whole_pages(mut self) -> Map {
        self.bytes = self.bytes.next_multiple_of(crate::raw::page_size());
        self
    }

    /// Whether words can be stored.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Makes all from that byte on inaccessible.
    pub fn protect_from(&self, byte: usize) -> Result<()> {
        assert!(byte <= self.bytes, "byte {byte} is not mapped");
        // SAFETY: the offset has just been checked against the mapping.
        let start = unsafe { self.base.byte_add(byte) };
        // SAFETY: the range is part of the mapping. An access would end the process, as a claim
        // about what may be read does not hold then.
        let returned =
            unsafe { libc::mprotect(start.as_ptr(), self.bytes - byte, libc::PROT_NONE) };
        Errno::check(returned).map(drop)
    }

    /// Where the mapping starts.
    #[must_use]
    pub fn address(&self) -> *mut c_void {
        self.base.as_ptr()
    }

    /// Bytes that are mapped.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Words that are mapped.
    #[must_use]
    pub fn words(&self) -> usize {
        self.bytes / size_of::<u64>()
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words(), "word {index} is not mapped");
        // SAFETY: the index has just been checked against the mapping, which is page-aligned.
        let word = unsafe { self.base.cast::<u64>().add(index) };
        // SAFETY: the word stays mapped as long as `self`, and is accessed atomically only.
        unsafe { AtomicU64::from_ptr(word.as_ptr()) }
    }

    /// A word as it is now.
    #[must_use]
    pub fn load(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Acquire)
    }

    /// Stores a word. The mapping must be writable, or the process gets a signal.
    pub fn store(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Release);
    }

    fn half(&self, byte: usize) -> &AtomicU32 {
        assert!(byte % 4 == 0 && byte + 4 <= self.bytes, "byte {byte} is not mapped");
        // SAFETY: the offset has just been checked against the mapping, which is page-aligned.
        let half = unsafe { self.base.cast::<u32>().byte_add(byte) };
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(half.as_ptr()) }
    }

    /// The 32 bits at an offset in bytes, for mappings of other files.
    #[must_use]
    pub fn load32(&self, byte: usize) -> u32 {
        self.half(byte).load(Ordering::Acquire)
    }

    /// Stores 32 bits at an offset in bytes.
    pub fn store32(&self, byte: usize, value: u32) {
        self.half(byte).store(value, Ordering::Release);
    }

    /// Word 0.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.load(0)
    }

    /// Stores 0 to word 0.
    pub fn reset(&self) {
        self.store(0, 0);
    }

    /// Stores one value to all words from `first` on.
    pub fn fill(&self, first: usize, value: u64) {
        for index in first..self.words() {
            self.store(index, value);
        }
    }

    /// Copies that many words from `first` on.
    #[must_use]
    pub fn copy(&self, first: usize, words: usize) -> Vec<u64> {
        (first..first + words).map(|index| self.load(index)).collect()
    }

    /// `munmap`, with its result.
    pub fn unmap(self) -> Result<()> {
        let map = std::mem::ManuallyDrop::new(self);
        map.release()
    }

    fn release(&self) -> Result<()> {
        // SAFETY: only `unmap` and `drop` come here, each consumes the one owner of the mapping.
        let returned = unsafe { libc::munmap(self.base.as_ptr(), self.bytes) };
        Errno::check(returned).map(drop)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        self.release().expect("a mapping can be unmapped");
    }
}

/// Whether the byte at an address may be read, and whether it may be written. The kernel is asked, which
/// refuses instead of sending a signal.
///
/// # Panics
///
/// If there is no pipe.
#[must_use]
pub fn accessible(address: usize) -> (bool, bool) {
    let (out, into) = nix::unistd::pipe().expect("a pipe");
    // SAFETY: the kernel reads one byte at the address, or refuses to.
    let read = unsafe { libc::write(into.as_raw_fd(), address as *const _, 1) } == 1;
    if !read {
        nix::unistd::write(&into, &[0]).expect("room in the pipe");
    }
    // SAFETY: the kernel writes one byte at the address, the one that it has read there, or refuses
    // to. Nobody else writes to the memory meanwhile: it is of no session.
    let written = unsafe { libc::read(out.as_raw_fd(), address as *mut _, 1) } == 1;
    (read, written)
}
