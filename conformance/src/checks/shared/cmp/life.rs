//! File descriptors, threads, processes and programs in comparison mode.

use crate::checks::prelude::*;
use crate::checks::shared::thread::added_records;
use nix::unistd::dup2;

/// Panics unless this thread's calls are recorded as comparisons.
#[track_caller]
pub(crate) fn collects(map: &Map) {
    assert!(is_traced(map), "this thread is traced");
    // The first word is the type of the first record.
    assert!(map.load(1) < 8, "{:#x}", map.load(1));
}

pub(crate) const CHECKS: &[Check] = &[
    check("cmp.life.devices-are-independent", |cx| {
        let (first, map) = collecting(cx, KCOV_TRACE_CMP);
        map.reset();
        let (second, other) = mapped(cx);
        drop(open(cx));
        assert!(map.count() > 0, "opening is recorded by the device that is enabled");
        collects(&map);
        assert!(other.copy(0, other.words()).iter().all(|&word| word == 0), "and by no other");
        first.disable().expect("disabled");
        second.enable(KCOV_TRACE_CMP).expect("enabled");
        map.reset();
        collects(&other);
        assert_eq!(map.count(), 0);
    }),
    check("cmp.life.through-other-descriptors", |cx| {
        let (device, map) = mapped(cx);
        let duplicate = device.duplicate().expect("a duplicate");
        let mut moved = std::fs::File::open("/dev/null").expect("a descriptor").into();
        dup2(&device, &mut moved).expect("dup2");
        let moved = Device::from(moved);
        duplicate.enable(KCOV_TRACE_CMP).expect("enabled");
        collects(&map);
        device.close().expect("closed");
        duplicate.close().expect("closed");
        collects(&map);
        assert_eq!(moved.disable(), Ok(()));
        moved.enable(KCOV_TRACE_CMP).expect("enabled");
        collects(&map);
        assert_eq!(moved.disable(), Ok(()));
        assert_eq!(moved.close(), Ok(()));
    }),
    check("cmp.life.end-of-the-thread-disables", |cx| {
        let (device, map) = mapped(cx);
        thread(|| {
            device.enable(KCOV_TRACE_CMP).expect("enabled");
            collects(&map);
        });
        assert_eq!(added_records(&map, 4), 0);
        assert_eq!(enable_freed(&device, KCOV_TRACE_CMP), Ok(()), "nobody has it enabled");
        collects(&map);
    }),
    check("cmp.life.forked-child-enables-what-it-inherits", |cx| {
        let (device, map) = mapped(cx);
        let (count, first): (u64, Vec<u64>) = child(|| {
            device.enable(KCOV_TRACE_CMP).expect("enabled");
            collects(&map);
            let seen = (map.count(), map.copy(1, 4));
            device.disable().expect("disabled");
            seen
        });
        map.holds_comparisons();
        assert!(map.count() >= count, "the parent sees the child's count");
        assert_eq!(map.copy(1, 4), first, "and its records");
    }),
    check("cmp.life.process-may-end-while-enabled", |cx| {
        let (device, map) = mapped(cx);
        child(|| {
            device.enable(KCOV_TRACE_CMP).expect("enabled");
            collects(&map);
        });
        // The child's own file descriptors are closed when it ends, or before.
        child(|| std::mem::forget(collecting(cx, KCOV_TRACE_CMP)));
        child(|| {
            let (device, map) = collecting(cx, KCOV_TRACE_CMP);
            device.close().expect("closed");
            std::mem::forget(map);
        });
        assert_eq!(enable_freed(&device, KCOV_TRACE_CMP), Ok(()));
        collects(&map);
        device.disable().expect("disabled");
        assert_eq!(sized(cx, COVER_SIZE).enable(KCOV_TRACE_CMP), Ok(()));
    }),
];
