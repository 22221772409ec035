//! Remote sections: the kernel's exploration of a new device at a port.

use super::*;

/// One section of [`PORT`].
pub(super) fn section() {
    meanwhile(|| ());
}

fn meanwhile<T>(body: impl FnOnce() -> T) -> T {
    explored(0, 1, body)
}

/// Returns a device that collects from the source, and the source's buffer: marked, with a count of
/// 0.
fn enabled(cx: &Context, mode: u32) -> (Device, Map) {
    enabled_of(cx, PORT, mode)
}

fn enabled_of(cx: &Context, source: Source, mode: u32) -> (Device, Map) {
    let device = attached_to(cx, source);
    device.enable(mode).expect("enabled");
    let map = source_map(&device);
    mark_from(&map, 0);
    (device, map)
}

/// Asserts that `records` records of this many words each follow `before` ones, and that the rest
/// of the buffer is marked.
#[track_caller]
fn only_these(map: &Map, words: usize, before: u64, records: u64) {
    let place = |count| 1 + words * index(count);
    let (first, end) = (place(before), place(before + records));
    assert_eq!(map.count(), before + records);
    assert!(map.copy(1, first - 1).iter().all(|&word| word == SENTINEL), "before them");
    assert!(!map.copy(first, end - first).contains(&SENTINEL), "{records} records");
    assert!(is_marked_from(map, end), "after them");
}

/// Asserts that the buffer has records of the mode and nothing else, and empties it.
#[track_caller]
fn collected(map: &Map, mode: u32) {
    let words = words(mode);
    let count = map.count();
    assert!(count > 0, "nothing is collected");
    only_these(map, words, 0, count);
    let records = map.copy(1, words * index(count));
    let records = records.chunks_exact(words);
    // A comparison's type is a small number, a program counter is not.
    assert!(records.clone().all(|r| (r[0] < 8) == (mode == KCOV_TRACE_CMP)), "mode {mode}");
    let addresses: BTreeSet<u64> = records.map(|record| record[words - 1]).collect();
    let [least, greatest] = [addresses.first(), addresses.last()].map(|it| *it.expect("a record"));
    assert!(greatest - least < 1 << 30, "{least:#x} to {greatest:#x} is more than the kernel");
    mark_from(map, 0);
}

#[track_caller]
fn nothing_is_collected(map: &Map) {
    only_these(map, 1, 0, 0);
}

fn words(mode: u32) -> usize {
    if mode == KCOV_TRACE_CMP { 4 } else { 1 }
}

fn follow_the_count(cx: &Context, mode: u32) {
    let (_device, map) = enabled(cx, mode);
    for stored in [0, 1000] {
        mark_from(&map, stored);
        section();
        let first = map.count();
        only_these(&map, words(mode), stored, first - stored);
        let records = map.copy(0, 1 + words(mode) * index(first));
        section();
        assert!(map.count() > first, "the next section adds records");
        assert_eq!(map.copy(1, records.len() - 1), records[1..], "after the earlier ones");
        only_these(&map, words(mode), stored, map.count() - stored);
    }
}

fn end_with_the_buffer(cx: &Context, mode: u32) {
    let (_device, map) = enabled(cx, mode);
    let capacity = ((map.words() - 1) / words(mode)) as u64;
    for room in [5, 0] {
        mark_from(&map, capacity - room);
        section();
        only_these(&map, words(mode), capacity - room, room);
    }
}

fn end_is_immediate(cx: &Context, mode: u32) {
    let ends: [fn(Device); 3] = [
        |device| {
            device.disable().expect("disabled");
            // Closing would disable as well.
            std::mem::forget(device);
        },
        |device| {
            device.detach().expect("detached");
            std::mem::forget(device);
        },
        |device| device.close().expect("closed"),
    ];
    for end in ends {
        let (device, map) = enabled(cx, mode);
        let (_other, count) = meanwhile(|| {
            assert!(settled(&map) > 0, "the section has begun");
            end(device);
            (attached(cx), settled(&map))
        });
        only_these(&map, words(mode), 0, count);
    }
}

pub(crate) const CHECKS: &[Check] = &[
    check("remote.section.new-device-is-collected", |cx| {
        let (_device, map) = enabled(cx, KCOV_TRACE_PC);
        section();
        collected(&map, KCOV_TRACE_PC);
    }),
    check("remote.section.comparisons-are-collected", |cx| {
        let (_device, map) = enabled(cx, KCOV_TRACE_CMP);
        section();
        collected(&map, KCOV_TRACE_CMP);
    }),
    check("remote.section.not-enabled-collects-nothing", |cx| {
        let (device, map) = enabled(cx, KCOV_TRACE_PC);
        device.disable().expect("disabled");
        section();
        nothing_is_collected(&map);
        device.detach().expect("detached");
        device.attach(PORT).expect("attached");
        section();
        nothing_is_collected(&map);
    }),
    check("remote.section.mode-none-collects-nothing", |cx| {
        // Also after another mode.
        for before in [KCOV_MODE_NONE, KCOV_TRACE_PC] {
            let device = attached(cx);
            device.enable(before).expect("enabled");
            device.disable().expect("disabled");
            let (_other, map) = enabled(cx, KCOV_MODE_NONE);
            section();
            nothing_is_collected(&map);
            assert_eq!(device.disable(), Ok(()), "it was enabled");
        }
    }),
    check("remote.section.mode-is-that-of-the-enable", |cx| {
        let (device, map) = enabled(cx, KCOV_TRACE_PC);
        let other = attached(cx);
        assert!(device.enable(KCOV_TRACE_CMP).is_err(), "it is enabled");
        assert!(other.enable(KCOV_TRACE_CMP).is_err(), "so it is for another device");
        assert!(device.enable(3).is_err(), "there is no such mode");
        section();
        collected(&map, KCOV_TRACE_PC);
        device.disable().expect("disabled");
        other.enable(KCOV_TRACE_CMP).expect("enabled");
        device.attach(PORT).expect("attached again");
        section();
        collected(&map, KCOV_TRACE_CMP);
        other.detach().expect("detached");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        section();
        collected(&map, KCOV_TRACE_PC);
    }),
    check("remote.section.each-source-has-its-own-records", |cx| {
        let ports = [(0, 1), (0, 2), (1, 1), (1, 2)];
        let of = |(bus, port)| enabled_of(cx, Source::vhci(bus, port), KCOV_TRACE_PC);
        let sources = ports.map(of);
        for ((bus, port), (_, own)) in ports.into_iter().zip(&sources) {
            explored(bus, port, || ());
            collected(own, KCOV_TRACE_PC);
            sources.iter().for_each(|(_, map)| nothing_is_collected(map));
        }
    }),
    check("remote.section.records-follow-the-count", |cx| follow_the_count(cx, KCOV_TRACE_PC)),
    check("remote.section.comparisons-follow-the-count", |cx| follow_the_count(cx, KCOV_TRACE_CMP)),
    check("remote.section.ends-with-the-buffer", |cx| end_with_the_buffer(cx, KCOV_TRACE_PC)),
    check("remote.section.comparisons-end-with-the-buffer", |cx| {
        end_with_the_buffer(cx, KCOV_TRACE_CMP);
    }),
    check("remote.section.end-of-collection-is-immediate", |cx| {
        end_is_immediate(cx, KCOV_TRACE_PC);
    }),
    check("remote.section.end-of-comparisons-is-immediate", |cx| {
        end_is_immediate(cx, KCOV_TRACE_CMP);
    }),
    check("remote.section.begins-with-the-next-section", |cx| {
        let (device, map) = enabled(cx, KCOV_TRACE_PC);
        device.disable().expect("disabled");
        meanwhile(|| device.enable(KCOV_TRACE_PC).expect("enabled"));
        nothing_is_collected(&map);
        section();
        collected(&map, KCOV_TRACE_PC);
    }),
    check("remote.section.follows-the-mode", |cx| {
        let (device, map) = enabled(cx, KCOV_TRACE_PC);
        meanwhile(|| {
            device.disable().expect("disabled");
            assert!(settled(&map) > 0, "the section has begun");
            mark_from(&map, 0);
            device.enable(KCOV_TRACE_CMP).expect("enabled");
        });
        collected(&map, KCOV_TRACE_CMP);
    }),
    check("remote.section.goes-on-beside-other-operations", |cx| {
        let (device, map) = enabled(cx, KCOV_TRACE_PC);
        meanwhile(|| {
            let other = attached(cx);
            assert!(other.enable(KCOV_TRACE_CMP).is_err(), "it is enabled");
            device.init_trace(512).expect("ignored");
            device.duplicate().expect("a duplicate").close().expect("closed");
            source_map(&other).unmap().expect("unmapped");
            // The devices leave the source, which stays enabled.
            for device in [&device, &other] {
                device.attach(ELSEWHERE).expect("attached");
            }
            assert!(settled(&map) > 0, "the section has begun");
            mark_from(&map, 0);
        });
        collected(&map, KCOV_TRACE_PC);
        assert_eq!(attached(cx).disable(), Ok(()), "it is still enabled");
    }),
];
