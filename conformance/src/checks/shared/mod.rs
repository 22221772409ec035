//! Checks of what both systems promise, with the same id in both registries of claims. The errors
//! that refusals give, which differ, stand in the claims.

mod close;
pub(crate) mod cmp;
mod disable;
mod enable;
pub(crate) mod exec;
mod fork;
pub(crate) mod full;
pub(crate) mod kept;
mod map;
mod open;
pub(crate) mod pc;
mod request;
mod size;
pub(crate) mod thread;
mod workload;

use crate::check::{Check, Context};
use crate::errno::Result;
use crate::raw::{Device, Gate, KCOV_TRACE_PC, Map, call, page_words};

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
    pc::kept::CHECKS,
    cmp::CHECKS,
    cmp::full::CHECKS,
    cmp::kept::CHECKS,
    cmp::life::CHECKS,
    thread::CHECKS,
    close::CHECKS,
    fork::CHECKS,
    exec::CHECKS,
];

/// Words of the buffer in the document's programs.
pub(crate) const COVER_SIZE: u64 = 64 << 10;

/// What the kernel does not write of itself.
pub(crate) const SENTINEL: u64 = 0x5e47_1e15_5e47_1e15;

/// An open device.
pub(crate) fn open(cx: &Context) -> Device {
    Device::open(cx.device()).expect("the device opens")
}

/// An open device with a buffer of that many words.
pub(crate) fn sized(cx: &Context, words: u64) -> Device {
    let device = open(cx);
    device.init_trace(words).expect("the size is accepted");
    device
}

/// An open device with a buffer of the document's size, mapped.
pub(crate) fn mapped(cx: &Context) -> (Device, Map) {
    mapped_of(cx, COVER_SIZE)
}

/// An open device with a buffer of one page, mapped.
pub(crate) fn mapped_page(cx: &Context) -> (Device, Map) {
    mapped_of(cx, page_words())
}

pub(crate) fn mapped_of(cx: &Context, words: u64) -> (Device, Map) {
    let device = sized(cx, words);
    let map = device.map(words).expect("the buffer is mapped");
    (device, map)
}

/// Stores `value` to all words behind the count, and a count that keeps the kernel from recording
/// meanwhile: a thread is also made to record by what its own interruptions bring.
pub(crate) fn mark(map: &Map, value: u64) {
    map.store(0, map.words() as u64);
    map.fill(1, value);
}

/// The words of a map, as an index.
pub(crate) fn index(words: u64) -> usize {
    usize::try_from(words).expect("an index")
}

/// Enables the device in a thread that then blocks, and runs `body` meanwhile.
pub(crate) fn while_other_is_enabled<T>(device: &Device, body: impl FnOnce() -> T) -> T {
    beside_other(|| device.enable(KCOV_TRACE_PC), body, || ()).0
}

/// Panics unless a thread that has enabled is still traced into `map` after `body` has run here.
#[track_caller]
pub(crate) fn other_stays_traced(
    map: &Map,
    enable: impl FnOnce() -> Result<()> + Send,
    body: impl FnOnce(),
) {
    let traced = || {
        map.reset();
        call();
        map.count()
    };
    let ((), count) = beside_other(enable, body, traced);
    assert!(count > 0, "the other thread is still traced");
}

/// Enables in a thread that then blocks, runs `body` meanwhile, and `after` in that thread.
fn beside_other<T, U: Send>(
    enable: impl FnOnce() -> Result<()> + Send,
    body: impl FnOnce() -> T,
    after: impl FnOnce() -> U + Send,
) -> (T, U) {
    let (tried, done) = (Gate::default(), Gate::default());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let enabled = enable();
            tried.open();
            enabled.expect("enabled in the other thread");
            done.wait();
            after()
        });
        // Opened also when `body` panics, or the scope would wait for ever.
        let at_end = done.open_at_end();
        tried.wait();
        let value = body();
        drop(at_end);
        (value, other.join().expect("the other thread"))
    })
}
