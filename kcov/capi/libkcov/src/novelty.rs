//! Novelty maps, private and shared.

use crate::failure::{Failure, Handle as _, enter, free, guard, handle, kcov_failure};
use crate::memory::{Output, array, counted, given, path, words};
use kcov_signal::{NoveltyMap, Ranges};
use rustix::fs::{fstat, ftruncate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// The usual number of signals outside the ranges that a map has room for.
pub const KCOV_NOVELTY_FALLBACK: usize = 4096;
const _: () = assert!(KCOV_NOVELTY_FALLBACK == NoveltyMap::FALLBACK);

/// Addresses from `start` to before `end`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct kcov_range {
    pub start: u64,
    pub end: u64,
}

/// Remembers which signals have been seen: exactly, in one bit per byte of kernel text.
pub struct kcov_novelty(Mutex<Map>);
handle!(kcov_novelty: Map);

type Map = NoveltyMap<Memory>;

/// Mapped memory.
pub(crate) struct Memory {
    start: NonNull<c_void>,
    words: usize,
}

// SAFETY: memory belongs to the process, not to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps that many words: of the file, or of nobody else.
    fn map(file: Option<BorrowedFd<'_>>, words: usize) -> rustix::io::Result<Memory> {
        let bytes = words * size_of::<AtomicU64>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let start = match file {
            // SAFETY: a new mapping, wherever there is room.
            Some(file) => unsafe {
                mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)
            },
            // SAFETY: as above.
            None => unsafe {
                mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)
            },
        };
        Ok(Memory { start: NonNull::new(start?).ok_or(Errno::FAULT)?, words })
    }
}

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: a mapping is aligned, 0 where the file had no data, and lives as long as this value.
        // Processes that share it access it atomically. The header forbids truncation.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this value made the mapping, and nothing borrows it any more.
        let _ = unsafe { munmap(self.start.as_ptr(), self.words * size_of::<AtomicU64>()) };
    }
}

/// # Safety
///
/// As for [`array`].
unsafe fn ranges(start: *const kcov_range, count: usize) -> Result<Ranges, Failure> {
    // SAFETY: the caller promises it.
    let ranges = unsafe { array(start, count, "ranges") }?;
    Ranges::new(ranges.iter().map(|range| range.start..range.end)).map_err(Failure::argument)
}

/// Opens the map in a file, which becomes long enough, or makes an empty one.
fn open(file: Option<BorrowedFd<'_>>, ranges: Ranges, fallback: usize) -> Result<Map, Failure> {
    let refuse = |errno| match file {
        Some(_) => Failure::file(format!("cannot share a map through the file: {errno}")),
        None => Failure::new(kcov_failure::OutOfMemory, format!("cannot make a map: {errno}")),
    };
    let words = NoveltyMap::words(&ranges, fallback);
    if let Some(file) = file {
        let bytes = (words * size_of::<AtomicU64>()) as u64;
        if u64::try_from(fstat(file).map_err(refuse)?.st_size).unwrap_or(0) < bytes {
            // Another process may do the same at once. The length never shrinks.
            ftruncate(file, bytes).map_err(refuse)?;
        }
    }
    let memory = Memory::map(file, words).map_err(refuse)?;
    NoveltyMap::open(memory, ranges, fallback).map_err(Failure::argument)
}

/// Makes an empty map. In the ranges, such as the kernel's text, there is always room; outside them
/// there is room for `fallback` signals, at most 2^20. NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_new(
    ranges: *const kcov_range,
    count: usize,
    fallback: usize,
) -> Option<Box<kcov_novelty>> {
    guard("kcov_novelty_new", None, || {
        // SAFETY: as the header demands.
        let ranges = unsafe { self::ranges(ranges, count) }?;
        Ok(Some(kcov_novelty::new(open(None, ranges, fallback)?)))
    })
}

/// Opens the map in a file that processes share, such as a memfd. The file becomes long enough.
/// While it is mapped, nobody may shorten it, and its file system must have room for it: otherwise
/// the process gets SIGBUS. All must pass the same ranges and fallback. The descriptor stays the
/// caller's, and may be closed. NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_share(
    fd: c_int,
    ranges: *const kcov_range,
    count: usize,
    fallback: usize,
) -> Option<Box<kcov_novelty>> {
    guard("kcov_novelty_share", None, || {
        if fd < 0 {
            return Err(Failure::argument("`fd` is negative; pass an open descriptor"));
        }
        // SAFETY: not negative, and as the header demands, open.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        // SAFETY: as the header demands.
        let ranges = unsafe { self::ranges(ranges, count) }?;
        Ok(Some(kcov_novelty::new(open(Some(file), ranges, fallback)?)))
    })
}

/// Loads a private map that kcov_novelty_save saved. NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_load(path: *const c_char) -> Option<Box<kcov_novelty>> {
    guard("kcov_novelty_load", None, || {
        // SAFETY: as the header demands.
        let path = given(unsafe { self::path(path) }, "path")?;
        let saved = NoveltyMap::load(path).map_err(Failure::file)?;
        let map = open(None, saved.ranges().clone(), saved.fallback_capacity())?;
        map.merge(&saved.iter().collect::<Vec<_>>());
        Ok(Some(kcov_novelty::new(map)))
    })
}

/// Saves the map, also a shared one. Replaces the file at once, or leaves it. 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_save(map: *mut kcov_novelty, path: *const c_char) -> c_int {
    guard("kcov_novelty_save", -1, || {
        // SAFETY: as the header demands.
        let path = given(unsafe { self::path(path) }, "path")?;
        // SAFETY: as the header demands.
        let saved = unsafe { enter(map) }?.save(path);
        saved.map(|()| 0).map_err(Failure::file)
    })
}

/// Whether any signal is new: 1 or 0; -1 on failure. Stops soon after the first new one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_has_new(
    map: *mut kcov_novelty,
    signals: *const u64,
    count: usize,
) -> c_int {
    guard("kcov_novelty_has_new", -1, || {
        // SAFETY: as the header demands.
        let signals = unsafe { words(signals, count, "signals") }?;
        // SAFETY: as the header demands.
        let map = unsafe { enter(map) }?;
        Ok(map.has_new(signals).into())
    })
}

/// Adds signals. Returns the number of new ones, or -1, and stores the first `capacity` of them to
/// `out`, in order. `unrecorded`, unless it is NULL, gets the number of occurrences for which there
/// was no room. Of processes that share the map, one sees each signal as new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_merge(
    map: *mut kcov_novelty,
    signals: *const u64,
    count: usize,
    out: *mut u64,
    capacity: usize,
    unrecorded: Option<&mut u64>,
) -> i64 {
    guard("kcov_novelty_merge", -1, || {
        // SAFETY: as the header demands.
        let signals = unsafe { words(signals, count, "signals") }?;
        // SAFETY: as the header demands.
        let mut out = unsafe { Output::new(out, capacity) }?;
        // SAFETY: as the header demands.
        let map = unsafe { enter(map) }?;
        Ok(counted(map.merge_with(signals, |signal| out.push(signal)), unrecorded))
    })
}

/// The number of signals in the map, or -1. Stores the first `capacity` of them to `out`, in
/// ascending order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_signals(
    map: *mut kcov_novelty,
    out: *mut u64,
    capacity: usize,
) -> i64 {
    guard("kcov_novelty_signals", -1, || {
        // SAFETY: as the header demands.
        let out = unsafe { Output::new(out, capacity) }?;
        // SAFETY: as the header demands.
        let map = unsafe { enter(map) }?;
        Ok(out.fill(map.iter()))
    })
}

/// Forgets all signals. A shared map loses those of all processes. 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_novelty_clear(map: *mut kcov_novelty) -> c_int {
    guard("kcov_novelty_clear", -1, || {
        // SAFETY: as the header demands.
        unsafe { enter(map) }?.clear();
        Ok(0)
    })
}

/// Frees the map. Shared memory stays. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_novelty_free(map: Option<Box<kcov_novelty>>) {
    free(map);
}
