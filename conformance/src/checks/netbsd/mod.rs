//! The checks of the NetBSD device, one file per topic.

#[path = "../api/netbsd/mod.rs"]
pub(crate) mod api;
pub(crate) mod calls;
mod close;
mod cmp;
mod disable;
mod enable;
mod exec;
mod map;
mod open;
mod pc;
mod remote;
pub(crate) mod request;
mod size;
mod thread;

use crate::check::{Check, Context};
use crate::checks::shared::{COVER_SIZE, index, mapped, mapped_of, mapped_page, open, sized};
use crate::errno::Result;
use crate::raw::{Device, LONG, Map, page_words, thread, wait_for};

/// The system's word.
pub const WORD: &str = "netbsd";

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    open::CHECKS,
    size::CHECKS,
    map::CHECKS,
    request::CHECKS,
    enable::CHECKS,
    disable::CHECKS,
    pc::CHECKS,
    pc::full::CHECKS,
    cmp::CHECKS,
    cmp::full::CHECKS,
    thread::CHECKS,
    close::CHECKS,
    exec::CHECKS,
    remote::CHECKS,
    remote::attach::CHECKS,
    remote::release::CHECKS,
    remote::section::CHECKS,
];

/// The greatest size in entries.
pub(crate) const GREATEST: u64 = kcov_sys::netbsd::KCOV_BUF_MAX_ENTRIES;

/// Words of a buffer with room for what executing a program records.
pub(crate) const EXEC_WORDS: u64 = GREATEST;

/// A device with a buffer of exactly that many entries, and the whole pages of it mapped.
fn mapped_pages_of(cx: &Context, entries: u64) -> (Device, Map) {
    let device = sized(cx, entries);
    let map = device.map(entries).expect("the buffer is mapped");
    let pages = entries.div_ceil(page_words());
    let whole = device.map(pages * page_words()).expect("whole pages");
    drop(map);
    (device, whole)
}

/// Enables a device that a thread had enabled which has ended: the kernel may free it only when
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
