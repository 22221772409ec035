//! The checks of the Linux device, one file per topic.

mod close;
mod cmp;
mod disable;
mod enable;
mod exec;
mod fork;
mod map;
mod open;
mod pc;
mod remote;
mod request;
mod size;
mod thread;

use crate::check::{Check, Context};
use crate::raw::{Device, Gate, KCOV_TRACE_PC, Map, page_words};

/// The system's word.
pub const WORD: &str = "linux";

/// The registries of claims, by file name.
pub const REGISTRIES: &[(&str, &str)] = &[
    ("linux-document.toml", include_str!("../../../claims/linux-document.toml")),
    ("linux-driver.toml", include_str!("../../../claims/linux-driver.toml")),
];

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
    pc::place::CHECKS,
    cmp::CHECKS,
    cmp::full::CHECKS,
    thread::CHECKS,
    close::CHECKS,
    fork::CHECKS,
    exec::CHECKS,
    remote::CHECKS,
    remote::handle::CHECKS,
    remote::release::CHECKS,
    remote::section::CHECKS,
];

/// Words of the buffer in the document's programs.
const COVER_SIZE: u64 = 64 << 10;

/// An open device.
fn open(cx: &Context) -> Device {
    Device::open(cx.device()).expect("the device opens")
}

/// An open device with a buffer of that many words.
fn sized(cx: &Context, words: u64) -> Device {
    let device = open(cx);
    device.init_trace(words).expect("the size is accepted");
    device
}

/// An open device with a buffer of the document's size, mapped.
fn mapped(cx: &Context) -> (Device, Map) {
    mapped_of(cx, COVER_SIZE)
}

/// An open device with a buffer of one page, mapped.
fn mapped_page(cx: &Context) -> (Device, Map) {
    mapped_of(cx, page_words())
}

fn mapped_of(cx: &Context, words: u64) -> (Device, Map) {
    let device = sized(cx, words);
    let map = device.map(words).expect("the buffer is mapped");
    (device, map)
}

/// Stores `value` to all words behind the count, and a count that keeps the kernel from recording
/// meanwhile: a thread is also made to record by what its own interruptions bring.
fn mark(map: &Map, value: u64) {
    map.store(0, map.words() as u64);
    map.fill(1, value);
}

/// The words of a map, as an index.
fn index(words: u64) -> usize {
    usize::try_from(words).expect("an index")
}

/// Enables the device in a thread that then blocks, and runs `body` meanwhile.
fn while_other_is_enabled<T>(device: &Device, body: impl FnOnce() -> T) -> T {
    let (tried, done) = (Gate::default(), Gate::default());
    std::thread::scope(|scope| {
        // Opened also when `body` panics, or the scope would wait for ever.
        let _open = done.open_at_end();
        scope.spawn(|| {
            let enabled = device.enable(KCOV_TRACE_PC);
            tried.open();
            enabled.expect("enabled in the other thread");
            done.wait();
        });
        tried.wait();
        body()
    })
}
