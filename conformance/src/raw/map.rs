//! A mapping, usually of the device's buffer.

use crate::errno::{Errno, Result};
use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A mapping of words of 64 bits, or of those of a [`Device`](crate::raw::Device). All accesses are
/// atomic, since the kernel may write at any time.
#[derive(Debug)]
pub struct Map {
    base: NonNull<c_void>,
    bytes: usize,
    writable: bool,
    width: Width,
}

/// The usual access to a mapping.
pub const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// The width in bytes of a buffer's words. It depends on the mode, so it can change while the buffer
/// is mapped.
#[derive(Clone, Debug)]
pub struct Width(Arc<AtomicUsize>);

impl Width {
    pub fn new(bytes: usize) -> Width {
        Width(Arc::new(AtomicUsize::new(bytes)))
    }

    pub fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

// SAFETY: the mapping belongs to no thread, and its words are only accessed atomically.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Calls `mmap` with exactly these arguments, at an address that the kernel chooses.
    pub fn new(fd: &impl AsRawFd, bytes: usize, offset: i64, prot: i32, flags: i32) -> Result<Map> {
        let fd = fd.as_raw_fd();
        let offset = libc::off_t::try_from(offset).expect("the offset fits");
        // SAFETY: without MAP_FIXED, the kernel picks an unused address range.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, prot, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let base = NonNull::new(base).expect("the kernel does not choose address zero");
        let width = Width::new(size_of::<u64>());
        Ok(Map { base, bytes, writable: prot & libc::PROT_WRITE != 0, width })
    }

    /// Maps this many zeroed bytes of private memory, readable and writable.
    pub fn anonymous(bytes: usize) -> Result<Map> {
        Map::new(&-1, bytes, 0, READ_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON)
    }

    /// Takes the width of this device's words.
    pub fn with_width(self, width: &Width) -> Map {
        let map = std::mem::ManuallyDrop::new(self);
        Map { width: width.clone(), base: map.base, bytes: map.bytes, writable: map.writable }
    }

    /// Extends the mapping to the end of its last page, which the kernel maps too.
    pub fn with_whole_pages(mut self) -> Map {
        self.bytes = self.bytes.next_multiple_of(crate::raw::page_size());
        self
    }

    /// Reads comparisons from now on, whose words have 64 bits. Needed only if another process
    /// enabled the device.
    pub fn holds_comparisons(&self) {
        self.width.set(size_of::<u64>());
    }

    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Gives everything from this byte on this access.
    pub fn protect_from(&self, byte: usize, prot: i32) -> Result<()> {
        assert!(byte <= self.bytes, "byte {byte} is not mapped");
        // SAFETY: the assertion above keeps the offset inside the mapping.
        let start = unsafe { self.base.byte_add(byte) };
        // SAFETY: the range is part of the mapping. An access that is not allowed ends the process,
        // and so fails the check.
        let returned = unsafe { libc::mprotect(start.as_ptr(), self.bytes - byte, prot) };
        Errno::check(returned).map(drop)
    }

    pub fn protect(&mut self, prot: i32) -> Result<()> {
        self.protect_from(0, prot)?;
        self.writable = prot & libc::PROT_WRITE != 0;
        Ok(())
    }

    pub fn address(&self) -> *mut c_void {
        self.base.as_ptr()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn words(&self) -> usize {
        self.bytes / self.width.get()
    }

    fn word(&self, index: usize) -> Word<'_> {
        assert!(index < self.words(), "word {index} is not mapped");
        if self.width.get() == 4 {
            return Word::Four(self.half(4 * index));
        }
        // SAFETY: the assertion keeps the index inside the mapping, which is page-aligned.
        let word = unsafe { self.base.cast::<u64>().add(index) };
        // SAFETY: the word stays mapped as long as `self`, and is only accessed atomically.
        Word::Eight(unsafe { AtomicU64::from_ptr(word.as_ptr()) })
    }

    pub fn load(&self, index: usize) -> u64 {
        match self.word(index) {
            Word::Four(word) => word.load(Ordering::Acquire).into(),
            Word::Eight(word) => word.load(Ordering::Acquire),
        }
    }

    /// Stores as much of a word as fits. The mapping must be writable; otherwise the process gets a
    /// signal.
    pub fn store(&self, index: usize, value: u64) {
        match self.word(index) {
            Word::Four(word) => word.store(value as u32, Ordering::Release),
            Word::Eight(word) => word.store(value, Ordering::Release),
        }
    }

    pub fn swap(&self, index: usize, value: u64) -> u64 {
        match self.word(index) {
            Word::Four(word) => word.swap(value as u32, Ordering::Relaxed).into(),
            Word::Eight(word) => word.swap(value, Ordering::Relaxed),
        }
    }

    pub(crate) fn half(&self, byte: usize) -> &AtomicU32 {
        assert!(byte % 4 == 0 && byte + 4 <= self.bytes, "byte {byte} is not mapped");
        // SAFETY: the assertion keeps the offset inside the mapping, which is page-aligned.
        let half = unsafe { self.base.cast::<u32>().byte_add(byte) };
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(half.as_ptr()) }
    }

    /// Loads the 32 bits at an offset in bytes, for mappings of other files.
    pub fn load32(&self, byte: usize) -> u32 {
        self.half(byte).load(Ordering::Acquire)
    }

    pub fn count(&self) -> u64 {
        self.load(0)
    }

    pub fn reset(&self) {
        self.store(0, 0);
    }

    /// Stores one value to all words from `first` on.
    pub fn fill(&self, first: usize, value: u64) {
        for index in first..self.words() {
            self.store(index, value);
        }
    }

    pub fn copy(&self, first: usize, words: usize) -> Vec<u64> {
        (first..first + words).map(|index| self.load(index)).collect()
    }

    pub fn unmap(self) -> Result<()> {
        let map = std::mem::ManuallyDrop::new(self);
        map.release()
    }

    fn release(&self) -> Result<()> {
        // SAFETY: only `unmap` and `drop` call this, and each consumes the mapping's sole owner.
        let returned = unsafe { libc::munmap(self.base.as_ptr(), self.bytes) };
        Errno::check(returned).map(drop)
    }
}

enum Word<'a> {
    Four(&'a AtomicU32),
    Eight(&'a AtomicU64),
}

impl Drop for Map {
    fn drop(&mut self) {
        self.release().expect("a mapping can be unmapped");
    }
}

/// The four bytes at this address, if they are readable. This asks the kernel, as
/// [`accessible`] does.
pub fn peek(address: usize) -> Option<[u8; 4]> {
    let (out, into) = nix::unistd::pipe().expect("a pipe");
    let mut bytes = [0; 4];
    // SAFETY: the kernel reads the bytes at the address, or returns an error.
    let read = unsafe { libc::write(into.as_raw_fd(), address as *const _, bytes.len()) } == 4;
    drop(into);
    let given = nix::unistd::read(&out, &mut bytes).expect("what was written");
    assert_eq!(given == 4, read);
    read.then_some(bytes)
}

/// Whether the byte at this address is readable, and whether it is writable. This asks the kernel,
/// which returns an error instead of sending a signal.
pub fn accessible(address: usize) -> (bool, bool) {
    let (out, into) = nix::unistd::pipe().expect("a pipe");
    // SAFETY: the kernel reads one byte at the address, or returns an error.
    let read = unsafe { libc::write(into.as_raw_fd(), address as *const _, 1) } == 1;
    if !read {
        nix::unistd::write(&into, &[0]).expect("room in the pipe");
    }
    // SAFETY: the kernel writes back the byte that it read there, or returns an error. The memory
    // belongs to no session, so nothing else writes to it meanwhile.
    let written = unsafe { libc::read(out.as_raw_fd(), address as *mut _, 1) } == 1;
    (read, written)
}
