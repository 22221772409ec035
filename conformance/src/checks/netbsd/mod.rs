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
use crate::raw::{Device, Map};

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
    let pages = index(entries).div_ceil(index(crate::raw::page_words()));
    let whole = device.map(pages as u64 * crate::raw::page_words()).expect("whole pages");
    drop(map);
    (device, whole)
}

/// Whether the device can be enabled, at the latest after threads have come and gone: the kernel
/// may free what an ended thread had enabled only then.
fn is_freed(device: &Device) -> bool {
    crate::raw::wait_for(std::time::Duration::from_secs(5), || {
        crate::raw::thread(|| ());
        device.enable(crate::raw::KCOV_TRACE_PC).is_ok()
    })
}
