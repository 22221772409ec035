//! Operations that change no word of a buffer, including the count. The same for both modes.

use super::*;

/// Panics if the operation changes a word of the buffer, whether it succeeds or fails.
#[track_caller]
pub(crate) fn unchanged<T>(map: &Map, operation: impl FnOnce() -> T) -> T {
    // The operation may change how wide the words are.
    let all = || (0..map.bytes()).step_by(4).map(|byte| map.load32(byte)).collect::<Vec<_>>();
    let before = all();
    let value = operation();
    let after = all();
    if let Some(at) = (0..before.len()).find(|&at| before[at] != after[at]) {
        panic!("byte {} was {:#x} and is {:#x}", 4 * at, before[at], after[at]);
    }
    value
}

/// Panics if the operation removes or changes the records of an earlier call. It may add records of
/// its own after them.
#[track_caller]
pub(super) fn records_outlast<T>(map: &Map, mode: u32, operation: impl FnOnce() -> T) -> T {
    map.reset();
    call();
    let before = map.count();
    let words = super::index(before) * if mode == KCOV_TRACE_CMP { 4 } else { 1 };
    let records = map.copy(1, words);
    assert!(before > 0 && words < map.words(), "{before} records in {} words", map.words());
    let value = operation();
    assert!(map.count() >= before, "{} records of {before}", map.count());
    assert_eq!(map.copy(1, words), records);
    value
}

/// Panics if the operation changes a word of the buffer. Tries it on a device that is disabled,
/// enabled by this thread, and enabled by another thread.
#[track_caller]
fn changes_nothing<T>(cx: &Context, mode: u32, operation: impl Fn(&Device) -> T) {
    let (device, map) = mapped_page(cx);
    mark_from(&map, 5);
    unchanged(&map, || operation(&device));

    device.enable(mode).expect("enabled");
    records_outlast(&map, mode, || operation(&device));
    // The count that `mark` stores leaves no room, so the operation itself is not recorded.
    mark(&map, SENTINEL);
    unchanged(&map, || operation(&device));
    assert!(is_traced(&map), "this thread is still traced");
    assert_eq!(map.load(1) < 8, mode == KCOV_TRACE_CMP, "{:#x} in mode {mode}", map.load(1));
    device.disable().expect("disabled");

    map.reset();
    let meanwhile = || {
        assert!(settled(&map) > 0, "the other thread is traced");
        unchanged(&map, || operation(&device));
    };
    beside_other(|| device.enable(mode), meanwhile, || ());
}

fn by_mapping(cx: &Context, mode: u32) {
    changes_nothing(cx, mode, |device| {
        let map = || device.map(page_words()).expect("mapped");
        [map(), map()]
    });
}

fn by_unmapping(cx: &Context, mode: u32) {
    changes_nothing(cx, mode, |device| {
        device.map(page_words()).expect("mapped").unmap().expect("unmapped");
    });
}

fn by_closing_a_duplicate(cx: &Context, mode: u32) {
    changes_nothing(cx, mode, |device| {
        device.duplicate().expect("a duplicate").close().expect("closed");
    });
}

fn by_other_devices(cx: &Context, mode: u32) {
    changes_nothing(cx, mode, |_| {
        let device = sized(cx, COVER_SIZE);
        device.map(COVER_SIZE).expect("mapped").store(0, 7);
        device.close().expect("closed");
    });
}

fn by_enabling_and_disabling(cx: &Context, mode: u32) {
    let (device, map) = mapped(cx);
    // Whatever the mode was before.
    for before in modes(cx) {
        device.enable(before).expect("enabled");
        device.disable().expect("disabled");
        mark(&map, SENTINEL);
        unchanged(&map, || device.enable(mode).expect("enabled"));
        records_outlast(&map, mode, || device.disable().expect("disabled"));
        device.enable(mode).expect("enabled");
        mark(&map, SENTINEL);
        unchanged(&map, || device.disable().expect("disabled"));
    }
}

fn by_the_end_of_the_thread(cx: &Context, mode: u32) {
    let (device, map) = mapped_page(cx);
    mark(&map, SENTINEL);
    unchanged(&map, || {
        thread(|| device.enable(mode).expect("enabled"));
        enable_freed(&device, mode).expect("the thread has ended");
        device.disable().expect("disabled");
    });
}

pub(crate) const CHECKS: &[Check] = &[
    check("pc.kept.by-mapping", |cx| by_mapping(cx, KCOV_TRACE_PC)),
    check("pc.kept.by-unmapping", |cx| by_unmapping(cx, KCOV_TRACE_PC)),
    check("pc.kept.by-closing-a-duplicate", |cx| by_closing_a_duplicate(cx, KCOV_TRACE_PC)),
    check("pc.kept.by-other-devices", |cx| by_other_devices(cx, KCOV_TRACE_PC)),
    check("pc.kept.by-enabling-and-disabling", |cx| by_enabling_and_disabling(cx, KCOV_TRACE_PC)),
    check("pc.kept.by-the-end-of-the-thread", |cx| by_the_end_of_the_thread(cx, KCOV_TRACE_PC)),
    check("cmp.kept.by-mapping", |cx| by_mapping(cx, KCOV_TRACE_CMP)),
    check("cmp.kept.by-unmapping", |cx| by_unmapping(cx, KCOV_TRACE_CMP)),
    check("cmp.kept.by-closing-a-duplicate", |cx| by_closing_a_duplicate(cx, KCOV_TRACE_CMP)),
    check("cmp.kept.by-other-devices", |cx| by_other_devices(cx, KCOV_TRACE_CMP)),
    check("cmp.kept.by-enabling-and-disabling", |cx| by_enabling_and_disabling(cx, KCOV_TRACE_CMP)),
    check("cmp.kept.by-the-end-of-the-thread", |cx| by_the_end_of_the_thread(cx, KCOV_TRACE_CMP)),
];
