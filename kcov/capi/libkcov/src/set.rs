//! The unique signals of one execution.

use crate::failure::{Failure, Handle as _, enter, free, guard, handle};
use crate::memory::{Output, counted, words};
use kcov_signal::UniqueSet;
use std::ffi::c_int;
use std::sync::Mutex;

/// The unique signals of one execution, in order of first occurrence.
pub struct kcov_set(Mutex<UniqueSet>);
handle!(kcov_set: UniqueSet);

/// Makes an empty set with room for `capacity` signals, at most 2^24. Allocates all of it: 40 to 72
/// bytes for each. NULL on failure.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_set_new(capacity: usize) -> Option<Box<kcov_set>> {
    guard("kcov_set_new", None, || {
        let most = 1 << 24;
        if capacity > most {
            return Err(Failure::argument(format!("{capacity} signals; pass at most {most}")));
        }
        Ok(Some(kcov_set::new(UniqueSet::new(capacity))))
    })
}

/// Adds signals. Returns the number of new ones, or -1. `unrecorded`, unless it is NULL, gets
/// the number of occurrences for which there was no room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_set_add(
    set: *mut kcov_set,
    signals: *const u64,
    count: usize,
    unrecorded: Option<&mut u64>,
) -> i64 {
    guard("kcov_set_add", -1, || {
        // SAFETY: as the header demands.
        let signals = unsafe { words(signals, count, "signals") }?;
        // SAFETY: as the header demands.
        Ok(counted(unsafe { enter(set) }?.collect(signals), unrecorded))
    })
}

/// The number of signals in the set, or -1. Stores the first `capacity` of them to `out`, in order
/// of first occurrence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_set_signals(
    set: *mut kcov_set,
    out: *mut u64,
    capacity: usize,
) -> i64 {
    guard("kcov_set_signals", -1, || {
        // SAFETY: as the header demands.
        let out = unsafe { Output::new(out, capacity) }?;
        // SAFETY: as the header demands.
        let set = unsafe { enter(set) }?;
        Ok(out.fill(set.as_slice().iter().copied()))
    })
}

/// Forgets all signals, in constant time, for the next execution. 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_set_clear(set: *mut kcov_set) -> c_int {
    guard("kcov_set_clear", -1, || {
        // SAFETY: as the header demands.
        unsafe { enter(set) }?.clear();
        Ok(0)
    })
}

/// Frees the set. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_set_free(set: Option<Box<kcov_set>>) {
    free(set);
}
