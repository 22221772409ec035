//! Counts that no driver stores. The crate must neither trust them nor make a request with one:
//! with such a count some kernels write in front of the buffer.

use super::{enable, intruder, lend, open};
use crate::check::{Context, checks};
use crate::checks::shared::{SENTINEL, fits, is_sentinel};
use crate::raw::{Map, at_times, call, child};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{Completeness, Device, Words};

checks! {
    "api.hostile.count-beyond-the-buffer-is-corrupt": count_beyond_the_buffer_is_corrupt,
    "api.hostile.count-of-comparisons-beyond-the-buffer-is-corrupt":
        count_of_comparisons_beyond_the_buffer_is_corrupt,
    "api.hostile.full-is-not-corrupt": full_is_not_corrupt,
    "api.hostile.request-that-enables": request_that_enables,
    "api.hostile.request-that-enables-comparisons": request_that_enables_comparisons,
    "api.hostile.request-that-disables": request_that_disables,
    "api.hostile.request-that-disables-comparisons": request_that_disables_comparisons,
    "api.hostile.buffer-for-children": buffer_for_children,
}

/// Counts that make some kernel write in front of the buffer, inside it, or far behind it.
const COUNTS: [u64; 4] = [u64::MAX, 1 << 62, (1 << 62) - 1, 1 << 32];

/// Counts that make no kernel write outside the buffer, for a thread that is enabled: it may be
/// interrupted before it makes a request, and x86 traces the return to user space.
const WHILE_ENABLED: [u64; 4] = [1 << 62, (1 << 62) + 100, 1 << 32, 1 << 31];

/// Runs the code of a session and of these checks once, because the page faults of code that runs
/// for the first time are recorded like system calls.
fn warm_up<M: Mode>(device: &mut Device, map: &Map, mode: M) {
    // Beyond the buffer, but too small to overflow: no kernel writes there if this code faults.
    let beyond = device.words() as u64;
    let session = device.enable(mode).expect("enabled");
    if matches!(session.trace().words(), Words::U64(_)) {
        map.holds_comparisons();
    }
    call();
    map.fill(1, SENTINEL);
    map.store(0, beyond);
    assert!(is_corrupt(session.trace().completeness()));
    drop(session);
}

fn is_corrupt(completeness: Completeness) -> bool {
    matches!(completeness, Completeness::Corrupt { .. })
}

fn count_beyond_the_buffer_is_corrupt(cx: &Context) {
    let mut device = open(cx, 1);
    let map = intruder(&device);
    warm_up(&mut device, &map, TracePc);
    // Records of an earlier session, which must not appear.
    map.fill(1, 7);
    let counts = [device.words() as u64, 1 << 31, 1 << 32, 1 << 63, u64::MAX - 1];
    for count in counts.into_iter().filter(|count| fits(*count)) {
        let session = enable(&mut device);
        map.store(0, count);
        let trace = session.trace();
        assert_eq!(trace.completeness(), Completeness::Corrupt { count });
        assert!(trace.is_empty() && !trace.is_truncated());
        assert_eq!((trace.iter().count(), trace.get(0), trace.words().len()), (0, None, 0));
        let trace = session.disable().expect("disabled");
        assert_eq!((trace.len(), trace.completeness()), (0, Completeness::Corrupt { count }));
        let is_empty = || {
            map.store(0, count);
            let trace = enable(&mut device).disable().expect("disabled");
            assert_eq!(trace.completeness(), Completeness::Complete);
            trace.is_empty()
        };
        // On NetBSD, a preemption during the session adds records of the context switch.
        assert!(at_times(is_empty), "{count:#x} does not reach the next session");
    }
}

fn count_of_comparisons_beyond_the_buffer_is_corrupt(cx: &Context) {
    // The count is stored after the session, since some kernels trust it in comparison mode.
    let mut device = open(cx, 1);
    let map = intruder(&device);
    let buffer = device.child_buffer(TraceCmp).expect("it is free");
    map.holds_comparisons();
    let most = (map.words() as u64 - 1) / 4;
    for count in [most + 1, 1 << 59, (1 << 62) - 1, u64::MAX] {
        map.store(0, count);
        let trace = buffer.trace();
        assert_eq!(trace.completeness(), Completeness::Corrupt { count });
        assert_eq!((trace.iter().count(), trace.is_truncated()), (0, false));
    }
}

fn full_is_not_corrupt(cx: &Context) {
    let mut device = open(cx, 1);
    let (map, most) = (intruder(&device), device.capacity(TracePc));
    let buffer = lend(&mut device);
    map.store(0, most as u64);
    let trace = buffer.trace();
    assert_eq!((trace.len(), trace.completeness()), (most, Completeness::Truncated));
    map.store(0, most as u64 - 1);
    assert_eq!(buffer.trace().completeness(), Completeness::Complete);
}

/// Relies on the end of the request being recorded, which shows the count it was made with.
fn enables_with_0<M: Mode>(cx: &Context, mode: M) {
    let mut device = open(cx, 1 << 16);
    let map = intruder(&device);
    warm_up(&mut device, &map, mode);
    for count in COUNTS {
        map.fill(1, SENTINEL);
        map.store(0, count);
        let session = device.enable(mode).expect("enabled");
        assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");
        assert_eq!(session.trace().completeness(), Completeness::Complete);
        call();
        let trace = session.trace();
        assert_eq!(trace.completeness(), Completeness::Complete);
        assert!(
            !trace.is_empty() && (1..=trace.words().len()).all(|at| !is_sentinel(&map.load(at)))
        );
        drop(session);

        map.fill(1, SENTINEL);
        map.store(0, count);
        let session = device.into_session(mode).expect("enabled");
        assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");
        device = session.disable().expect("disabled");
    }
}

fn request_that_enables(cx: &Context) {
    enables_with_0(cx, TracePc);
}

fn request_that_enables_comparisons(cx: &Context) {
    enables_with_0(cx, TraceCmp);
}

/// Relies on the start of the disable request being recorded in the same way.
fn disables_with_0<M: Mode>(cx: &Context, mode: M) {
    let mut device = open(cx, 1 << 16);
    let map = intruder(&device);
    warm_up(&mut device, &map, mode);
    // Words of 32-bit kernels have four bytes, except in comparison mode.
    let holds = |count: &u64| {
        map.store(0, *count);
        map.count() == *count
    };
    for count in WHILE_ENABLED.into_iter().filter(holds) {
        for is_dropped in [true, false] {
            let session = device.enable(mode).expect("enabled");
            map.fill(1, SENTINEL);
            map.store(0, count);
            if is_dropped {
                drop(session);
            } else {
                session.disable().expect("disabled");
            }
            assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");
            assert_eq!(map.count(), count, "stored again for readers");
        }
        let session = device.into_session(mode).expect("enabled");
        map.fill(1, SENTINEL);
        map.store(0, count);
        device = session.disable().expect("disabled");
        assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");

        // The device ends a leaked session.
        let mut leaked = open(cx, 1 << 16);
        let map = intruder(&leaked);
        std::mem::forget(leaked.enable(mode).expect("enabled"));
        map.fill(1, SENTINEL);
        map.store(0, count);
        drop(leaked);
        assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");
    }
}

fn request_that_disables(cx: &Context) {
    disables_with_0(cx, TracePc);
}

fn request_that_disables_comparisons(cx: &Context) {
    disables_with_0(cx, TraceCmp);
}

fn buffer_for_children(cx: &Context) {
    let mut device = open(cx, 1 << 16);
    let map = intruder(&device);
    warm_up(&mut device, &map, TraceCmp);
    for count in COUNTS {
        // A hostile count before the buffer is lent, and another before a child enables.
        map.fill(1, SENTINEL);
        map.store(0, count);
        let mut buffer = device.child_buffer(TraceCmp).expect("it is free");
        assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");
        assert_eq!(map.count(), 0);
        let seen = child(|| {
            map.fill(1, SENTINEL);
            map.store(0, count);
            let session = buffer.enable().expect("enabled in the child");
            assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");
            call();
            session.disable().expect("disabled").len()
        });
        assert!(seen > 0);
        assert_eq!(buffer.trace().len(), seen);
    }
}
