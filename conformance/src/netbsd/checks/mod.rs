//! The checks of the NetBSD device, one file per topic.

pub(crate) mod api;
pub(crate) mod calls;
mod close;
mod cmp;
mod enable;
mod map;
pub(crate) mod open;
mod pc;
mod remote;

use crate::checks::prelude::*;

pub const WORD: &str = "netbsd";

pub(crate) use kcov_sys::errno::netbsd::ALL as ERRNOS;

pub const CHECKS: &[&[Check]] = &[
    open::CHECKS,
    map::CHECKS,
    enable::CHECKS,
    pc::CHECKS,
    cmp::CHECKS,
    cmp::operands::CHECKS,
    close::CHECKS,
    remote::CHECKS,
    remote::attach::CHECKS,
    remote::kept::CHECKS,
    remote::release::CHECKS,
    remote::section::CHECKS,
];

pub(crate) const MODES: &[u32] = &[KCOV_MODE_NONE, KCOV_TRACE_PC, KCOV_TRACE_CMP];

pub(crate) const GREATEST: u64 = kcov_sys::netbsd::KCOV_BUF_MAX_ENTRIES;

/// The size in words of a buffer that holds all records of an exec.
pub(crate) const EXEC_WORDS: u64 = GREATEST;

pub(crate) fn max_words() -> u64 {
    GREATEST
}

/// Returns a device with a buffer of exactly this many entries, and a mapping of its whole pages.
fn mapped_pages_of(cx: &Context, entries: u64) -> (Device, Map) {
    let device = sized(cx, entries);
    let map = device.map(entries).expect("the buffer is mapped");
    let pages = entries.div_ceil(page_words());
    let whole = device.map(pages * page_words()).expect("whole pages");
    drop(map);
    (device, whole)
}

/// Enables a device whose enabling thread has ended. The kernel may free the device only when other
/// threads have come and gone.
pub(crate) fn enable_freed(device: &Device, mode: u32) -> Result<()> {
    let mut enabled = Ok(());
    let _ = wait_for(LONG, || {
        thread(|| ());
        enabled = device.enable(mode);
        enabled.is_ok()
    });
    enabled
}
