//! Devices and buffers as checks begin with them, and what checks ask of a buffer.

use crate::check::Context;
use crate::errno::{Errno, Result};
use crate::raw::*;
use nix::fcntl::OFlag;
use std::fmt::Debug;

/// The buffer size of the documented programs, in words.
pub(crate) const COVER_SIZE: u64 = 64 << 10;

/// A value that the kernel never writes by itself. Both halves are the same, for kernels with
/// words of four bytes.
pub(crate) const SENTINEL: u64 = 0x5e47_1e15_5e47_1e15;

/// Whether a word of the kernel can hold this value.
pub(crate) fn fits(value: u64) -> bool {
    word_bytes() == 8 || value <= u64::from(u32::MAX)
}

/// Whether a word holds [`SENTINEL`], or its lower half if the kernel's words have four bytes.
pub(crate) fn is_sentinel(word: &u64) -> bool {
    *word == SENTINEL || (word_bytes() == 4 && *word == SENTINEL & 0xffff_ffff)
}

pub(crate) fn open(cx: &Context) -> Device {
    Device::open(cx.device()).expect("the device opens")
}

/// Opens the device and sets a buffer size of this many words.
pub(crate) fn sized(cx: &Context, words: u64) -> Device {
    let device = open(cx);
    device.init_trace(words).expect("the size is accepted");
    device
}

/// The same with a descriptor of this access mode.
pub(crate) fn sized_with(cx: &Context, access: OFlag, words: u64) -> Device {
    let device = Device::open_with(cx.device(), access).expect("the device opens");
    device.init_trace(words).expect("the size is accepted");
    device
}

/// Opens the device and maps a buffer of the documented size.
pub(crate) fn mapped(cx: &Context) -> (Device, Map) {
    mapped_of(cx, COVER_SIZE)
}

/// Opens the device and maps a one-page buffer.
pub(crate) fn mapped_page(cx: &Context) -> (Device, Map) {
    mapped_of(cx, page_words())
}

pub(crate) fn mapped_of(cx: &Context, words: u64) -> (Device, Map) {
    let device = sized(cx, words);
    let map = device.map(words).expect("the buffer is mapped");
    (device, map)
}

/// Maps a buffer of this many words, and enables the device in this mode.
pub(crate) fn collecting_of(cx: &Context, words: u64, mode: u32) -> (Device, Map) {
    let (device, map) = mapped_of(cx, words);
    device.enable(mode).expect("enabled");
    (device, map)
}

/// Sets the documented buffer size, and enables the device in this mode.
pub(crate) fn enabled(cx: &Context, mode: u32) -> Device {
    let device = sized(cx, COVER_SIZE);
    device.enable(mode).expect("enabled");
    device
}

/// Maps a buffer of the documented size, and enables the device in this mode.
pub(crate) fn collecting(cx: &Context, mode: u32) -> (Device, Map) {
    collecting_of(cx, COVER_SIZE, mode)
}

/// A device with the documented buffer size.
pub(crate) fn usual(cx: &Context) -> Device {
    sized(cx, COVER_SIZE)
}

/// A device with a buffer of one page.
pub(crate) fn one_page(cx: &Context) -> Device {
    sized(cx, page_words())
}

/// A device with a buffer of two pages.
pub(crate) fn two_pages(cx: &Context) -> Device {
    sized(cx, 2 * page_words())
}

/// A device that traces this thread.
pub(crate) fn enabled_pc(cx: &Context) -> Device {
    enabled(cx, KCOV_TRACE_PC)
}

/// A device that traces this thread, with its buffer.
pub(crate) fn collecting_pc(cx: &Context) -> (Device, Map) {
    collecting(cx, KCOV_TRACE_PC)
}

/// The same in comparison mode.
pub(crate) fn collecting_cmp(cx: &Context) -> (Device, Map) {
    collecting(cx, KCOV_TRACE_CMP)
}

/// A device that traces this thread, with a buffer of one page.
pub(crate) fn page_of_pcs(cx: &Context) -> (Device, Map) {
    collecting_of(cx, page_words(), KCOV_TRACE_PC)
}

/// The same in comparison mode.
pub(crate) fn page_of_cmps(cx: &Context) -> (Device, Map) {
    collecting_of(cx, page_words(), KCOV_TRACE_CMP)
}

/// A device with a buffer for the records of an exec.
pub(crate) fn mapped_exec(cx: &Context) -> (Device, Map) {
    mapped_of(cx, EXEC_WORDS)
}

/// Whether the calling thread is traced into `map`.
pub(crate) fn is_traced(map: &Map) -> bool {
    map.reset();
    call();
    map.count() > 0
}

/// Asserts that this thread can enable the device, and is then traced.
#[track_caller]
pub(crate) fn traces(device: &Device, map: &Map) {
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    assert!(is_traced(map), "this thread is traced");
}

/// The modes that the kernel was built with.
pub(crate) fn modes(cx: &Context) -> impl Iterator<Item = u32> {
    let built = |mode: &u32| {
        let device = sized(cx, page_words());
        device.enable(*mode).and_then(|()| device.disable()).is_ok()
    };
    MODES.iter().copied().filter(built)
}

/// Stores `value` in all words after the count, and a count that leaves no room in any mode.
/// Otherwise an interruption of the thread could add records meanwhile.
pub(crate) fn mark(map: &Map, value: u64) {
    map.store(0, (map.bytes() / word_bytes()) as u64);
    map.fill(1, value);
}

/// Stores a count in the first word and [`SENTINEL`] in all others.
pub(crate) fn mark_from(map: &Map, count: u64) {
    mark(map, SENTINEL);
    map.store(0, count);
}

/// Whether the rest of the mapping, from this word on, holds nothing but sentinels.
pub(crate) fn is_marked_from(map: &Map, first: usize) -> bool {
    map.copy(first, map.words() - first).iter().all(is_sentinel)
}

pub(crate) fn is_zero(map: &Map) -> bool {
    (0..map.words()).all(|word| map.load(word) == 0)
}

/// Panics unless these words are comparisons: each begins with a type and ends with an address.
#[track_caller]
pub(crate) fn are_comparisons(words: &[u64]) {
    for record in words.chunks_exact(4) {
        assert!(record[0] < 8 && record[3] >= 4096 && record[3] != u64::MAX, "{record:#x?}");
    }
}

/// Converts a number of words to an index.
pub(crate) fn index(words: u64) -> usize {
    usize::try_from(words).expect("an index")
}

/// Enables the device in a thread that then blocks, and runs `body` meanwhile.
pub(crate) fn while_other_is_enabled<T>(device: &Device, body: impl FnOnce() -> T) -> T {
    beside_other(|| device.enable(KCOV_TRACE_PC), body, || ()).0
}

/// Panics unless a thread that ran `enable` is still traced into `map` after `body` has run here.
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

/// Runs `enable` in a thread that then blocks, `body` meanwhile, and `after` in that thread.
pub(crate) fn beside_other<T, U: Send>(
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
        // Opens the gate even if `body` panics; otherwise the scope would wait forever.
        let at_end = done.open_at_end();
        tried.wait();
        let value = body();
        drop(at_end);
        (value, other.join().expect("the other thread"))
    })
}

impl Context {
    /// Asserts that the device refuses the request with exactly the claim's error. The refusal must
    /// leave the buffer and its size as they are, and whether this thread is traced, in which mode,
    /// and whether it can enable the device.
    #[track_caller]
    pub(crate) fn refused_by<T: Debug>(
        &self,
        device: &Device,
        request: impl FnOnce(&Device) -> Result<T>,
    ) {
        let mapped = |words| device.map(words).ok();
        let Some(map) = [COVER_SIZE, page_words()].into_iter().find_map(mapped) else {
            return self.refused(request(device));
        };
        let words = map.copy(0, map.words());
        let state = || (traced(&map), enabling(device, &map));
        let before = state();
        mark(&map, SENTINEL);
        let result = request(device);
        let count = map.count();
        let stored = (1..map.words()).find(|&index| !is_sentinel(&map.load(index)));
        let after = state();
        words.iter().enumerate().rev().for_each(|(index, &word)| map.store(index, word));
        self.refused(result);
        assert_eq!(count, map.words() as u64, "a refusal leaves the count as it is");
        assert_eq!(stored, None, "a refusal stores no word");
        assert_eq!(
            after, before,
            "a refusal leaves the tracing, and whether this thread can enable"
        );
    }
}

/// Asserts that a call on a sized device is refused.
#[track_caller]
pub(crate) fn call_is_refused<T: Debug>(
    cx: &Context,
    call: impl FnOnce(&Device) -> nix::Result<T>,
) {
    cx.refused(call(&sized(cx, page_words())).map_err(Errno::from));
}

/// Enables the device and disables it again, or returns the error.
fn enabling(device: &Device, map: &Map) -> Result<Traced> {
    device.enable(KCOV_TRACE_PC)?;
    let traced = traced(map);
    device.disable()?;
    Ok(traced)
}

/// How a thread is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traced {
    Not,
    Counters { to_the_end: bool },
    Comparisons { to_the_end: bool },
}

/// Determines how this thread is traced into this buffer.
fn traced(map: &Map) -> Traced {
    /// How often to retry while the buffer's owner, another thread, may not have come to rest.
    const PATIENCE: u32 = 200;
    for _ in 0..PATIENCE {
        map.reset();
        call();
        if map.count() == 0 {
            return Traced::Not;
        }
        std::thread::yield_now();
    }
    let reaches = |records: usize| {
        map.store(0, records as u64 - 1);
        call();
        map.count() >= records as u64
    };
    // A comparison's type is a small number, a program counter is not.
    if map.load(1) < 8 {
        Traced::Comparisons { to_the_end: reaches((map.bytes() / 8 - 1) / 4) }
    } else {
        Traced::Counters { to_the_end: reaches(map.words() - 1) }
    }
}
