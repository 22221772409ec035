//! Closing, duplicating and passing on file descriptors.

use super::kept::records_outlast;
use super::{COVER_SIZE, mapped, mapped_of, modes, other_stays_traced, sized};
use crate::check::{Context, checks};
use crate::raw::{
    Device, KCOV_TRACE_PC, LONG, Map, call, child, free_memory, page_size, page_words,
    pass_descriptor, thread, wait_for, word_bytes,
};
use crate::system::checks::enable_freed;
use nix::unistd::dup2;

checks! {
    "close.while-enabled-keeps-tracing": while_enabled_keeps_tracing,
    "close.while-enabled-keeps-the-thread-busy": while_enabled_keeps_the_thread_busy,
    "close.while-enabled-ends-with-the-thread": while_enabled_ends_with_the_thread,
    "close.by-other-thread-changes-nothing": by_other_thread_changes_nothing,
    "close.one-of-two-descriptors": one_of_two_descriptors,
    "close.passed-descriptor-is-the-same-device": passed_descriptor_is_the_same_device,
    "close.other-number-of-a-descriptor": other_number_of_a_descriptor,
    "close.process-may-end-in-every-state": process_may_end_in_every_state,
    "close.buffer-is-freed": buffer_is_freed seconds(240),
    "close.buffer-of-an-ended-thread-is-freed": buffer_of_an_ended_thread_is_freed seconds(240),
}

fn while_enabled_keeps_tracing(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    records_outlast(&map, KCOV_TRACE_PC, || device.close().expect("closed"));
    map.reset();
    call();
    assert!(map.count() > 0);
}

fn while_enabled_keeps_the_thread_busy(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.close().expect("closed");
    cx.refused_by(&sized(cx, COVER_SIZE), |device| device.enable(KCOV_TRACE_PC));
}

fn while_enabled_ends_with_the_thread(cx: &Context) {
    let (device, map) = mapped(cx);
    thread(move || {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.close().expect("closed");
    });
    map.reset();
    for _ in 0..100 {
        call();
    }
    assert_eq!(map.count(), 0);
    assert_eq!(enable_freed(&sized(cx, COVER_SIZE), KCOV_TRACE_PC), Ok(()));
}

fn by_other_thread_changes_nothing(cx: &Context) {
    let (device, map) = mapped(cx);
    let kept = device.duplicate().expect("a duplicate");
    let close = || device.close().expect("closed");
    other_stays_traced(&map, || kept.enable(KCOV_TRACE_PC), close);
}

fn one_of_two_descriptors(cx: &Context) {
    let (device, map) = mapped(cx);
    let duplicate = device.duplicate().expect("a duplicate");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.close().expect("closed");
    map.reset();
    call();
    assert!(map.count() > 0);
    assert_eq!(duplicate.disable(), Ok(()));
}

fn passed_descriptor_is_the_same_device(cx: &Context) {
    let (device, map) = mapped(cx);
    let passed = pass_descriptor(&device);
    passed.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    call();
    assert!(map.count() > 0, "the buffer is the first descriptor's");
    let again = passed.map(COVER_SIZE).expect("the size is the first descriptor's");
    assert_eq!(again.load(1), map.load(1));
    assert_eq!(device.disable(), Ok(()));
}

fn other_number_of_a_descriptor(cx: &Context) {
    let (device, map) = mapped(cx);
    let mut moved = std::fs::File::open("/dev/null").expect("a descriptor").into();
    dup2(&device, &mut moved).expect("dup2");
    device.close().expect("closed");
    let moved = Device::from(moved);
    moved.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    call();
    assert!(map.count() > 0);
    moved.disable().expect("disabled");
    assert_eq!(moved.close(), Ok(()));
}

fn process_may_end_in_every_state(cx: &Context) {
    // The end of the child must clean up what the child leaves open, mapped or enabled.
    child(|| std::mem::forget(super::open(cx)));
    child(|| std::mem::forget(sized(cx, COVER_SIZE)));
    child(|| std::mem::forget(mapped(cx)));
    child(|| {
        let (device, map) = mapped(cx);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        std::mem::forget((device, map));
    });
    child(|| {
        let (device, map) = mapped(cx);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.close().expect("closed");
        std::mem::forget(map);
    });
    // The device of a parent outlives the child.
    for mode in modes(cx) {
        let device = sized(cx, COVER_SIZE);
        child(|| device.enable(mode).expect("enabled"));
        assert_eq!(enable_freed(&device, KCOV_TRACE_PC), Ok(()), "after mode {mode}");
        device.disable().expect("disabled");
    }
}

/// How many devices with buffers of 1 MiB to use, one after another.
const DEVICES: u64 = 32;
const WORDS: u64 = 1 << 17;

/// Panics if the use of a device and its buffer leaves much less memory free than before.
#[track_caller]
fn gives_back(cx: &Context, used: impl Fn(Device, Map)) {
    let bytes = DEVICES * WORDS * word_bytes() as u64;
    gives_back_bytes(DEVICES, bytes, || {
        let (device, map) = mapped_of(cx, WORDS);
        used(device, map);
    });
}

/// Panics unless most of these bytes, which `times` uses take, are free afterwards. Other activities
/// of the kernel use a little memory.
#[track_caller]
pub(crate) fn gives_back_bytes(times: u64, bytes: u64, used: impl Fn()) {
    used();
    let before = free_memory();
    (0..times).for_each(|_| used());
    let lost = || before.saturating_sub(free_memory());
    assert!(wait_for(LONG, || lost() < bytes / 2), "{} of {bytes} bytes are lost", lost());
}

fn buffer_is_freed(cx: &Context) {
    // The file descriptor and the mapping both hold the buffer. Either may go first.
    let uses: [fn(Device, Map); 3] = [
        |device, map| {
            map.store(map.words() - 1, 1);
            device.close().expect("closed");
            map.unmap().expect("unmapped");
        },
        |device, map| {
            let again = device.map(WORDS).expect("mapped again");
            device.enable(KCOV_TRACE_PC).expect("enabled");
            call();
            device.disable().expect("disabled");
            again.unmap().expect("unmapped");
            map.unmap().expect("unmapped");
            device.close().expect("closed");
        },
        |device, map| {
            map.unmap().expect("unmapped");
            assert!(device.init_trace(WORDS).is_err(), "it has a size");
            assert!(device.map(WORDS + page_words()).is_err(), "it is not as long");
            assert!(device.disable().is_err(), "it is not enabled");
        },
    ];
    uses.iter().for_each(|used| gives_back(cx, used));
    // The second page has one word.
    let times = 512;
    gives_back_bytes(times, times * 2 * page_size() as u64, || drop(sized(cx, page_words() + 1)));
}

fn buffer_of_an_ended_thread_is_freed(cx: &Context) {
    for mode in modes(cx) {
        // Closed by the thread itself.
        gives_back(cx, |device, map| {
            thread(|| {
                device.enable(mode).expect("enabled");
                device.close().expect("closed");
                drop(map);
            });
        });
        // Closed later.
        gives_back(cx, |device, map| {
            thread(|| device.enable(mode).expect("enabled"));
            drop((device, map));
        });
    }
}
