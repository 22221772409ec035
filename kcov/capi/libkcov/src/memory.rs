//! The caller's memory: each pointer and length is checked before it is used.

use crate::failure::Failure;
use kcov_signal::Merged;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::slice;
use std::sync::atomic::AtomicU64;

/// Checks that an array can exist.
fn check<T>(start: *const T, len: usize, name: &str) -> Result<(), Failure> {
    let refuse = |what: &str| Err(Failure::argument(format!("`{name}` {what}")));
    if start.is_null() {
        return refuse("is NULL; pass an array, or a length of 0");
    }
    if !start.is_aligned() {
        return refuse(&format!("is not aligned; align it to {} bytes", align_of::<T>()));
    }
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    if bytes.is_none_or(|bytes| start.addr().checked_add(bytes).is_none()) {
        return refuse("ends after the end of memory; pass its length in elements");
    }
    Ok(())
}

/// An array that the caller passes.
///
/// # Safety
///
/// Unless the array is NULL or `len` is 0, it must be valid for loads of `len` elements during `'a`.
/// Nobody may write to it, unless `T` is atomic and the writes are too.
pub(crate) unsafe fn array<'a, T>(
    start: *const T,
    len: usize,
    name: &str,
) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check(start, len, name)?;
    // SAFETY: not NULL, aligned, and not too long; the caller promises the rest.
    Ok(unsafe { slice::from_raw_parts(start, len) })
}

/// Signals or records that the caller passes, maybe in a buffer that the kernel is writing.
///
/// # Safety
///
/// As for [`array`], with atomic elements.
pub(crate) unsafe fn words<'a>(
    start: *const u64,
    len: usize,
    name: &str,
) -> Result<&'a [AtomicU64], Failure> {
    // SAFETY: the caller promises it.
    unsafe { array(start.cast(), len, name) }
}

/// An array that receives results: as many as it has room for.
pub(crate) struct Output<T> {
    start: *mut T,
    capacity: usize,
    results: usize,
}

impl<T> Output<T> {
    /// # Safety
    ///
    /// Unless the array is NULL or `capacity` is 0, it must be valid for stores of `capacity`
    /// elements for as long as this value lives.
    pub(crate) unsafe fn new(start: *mut T, capacity: usize) -> Result<Output<T>, Failure> {
        if capacity > 0 {
            check(start, capacity, "out")?;
        }
        Ok(Output { start, capacity, results: 0 })
    }

    pub(crate) fn push(&mut self, result: T) {
        if self.results < self.capacity {
            // SAFETY: less than `capacity`, for which `new` has a promise.
            let place = unsafe { self.start.add(self.results) };
            // SAFETY: the same promise.
            unsafe { place.write(result) };
        }
        self.results += 1;
    }

    /// Takes all results, and returns their number, which may be larger than the array.
    pub(crate) fn fill(mut self, results: impl Iterator<Item = T>) -> i64 {
        results.for_each(|result| self.push(result));
        self.results as i64
    }
}

/// A path that the caller passes; `None` for NULL.
///
/// # Safety
///
/// Unless it is NULL, it must be a string that ends with a zero byte.
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Option<&'a Path> {
    // SAFETY: not NULL; the caller promises the rest.
    let string = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })?;
    Some(Path::new(OsStr::from_bytes(string.to_bytes())))
}

/// The number of new signals. `unrecorded`, unless it is NULL, gets the number of the others.
pub(crate) fn counted(counts: Merged, unrecorded: Option<&mut u64>) -> i64 {
    if let Some(unrecorded) = unrecorded {
        *unrecorded = counts.unrecorded as u64;
    }
    counts.new as i64
}

/// An argument that may not be NULL.
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| Failure::argument(format!("`{name}` is NULL")))
}
