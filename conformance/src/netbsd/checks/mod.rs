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

/// Returns a device with a buffer of exactly this many entries, and a mapping of its whole pages.
fn mapped_pages_of(cx: &Context, entries: u64) -> (Device, Map) {
    let device = sized(cx, entries);
    let map = device.map(entries).expect("the buffer is mapped");
    let pages = entries.div_ceil(page_words());
    let whole = device.map(pages * page_words()).expect("whole pages");
    drop(map);
    (device, whole)
}
