//! Counts that no driver stores. The crate must neither trust them nor make a request with one:
//! with such a count some kernels write in front of the buffer.

use super::*;

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
    if session.trace().words().as_ptr().is_some() {
        map.holds_comparisons();
    }
    call();
    mark_from(map, beyond);
    assert!(corrupt(session.trace().completeness()).is_some());
    drop(session);
}

/// Asserts that a request has recorded from the start of the buffer on.
#[track_caller]
fn recorded_here(map: &Map, count: u64) {
    assert!(!is_sentinel(&map.load(1)), "{count:#x}: recorded elsewhere");
}

/// The count of a corrupt trace.
fn corrupt(completeness: Completeness) -> Option<u64> {
    match completeness {
        Completeness::Corrupt { count, .. } => Some(count),
        _ => None,
    }
}

/// Relies on the end of the request being recorded, which shows the count it was made with.
fn enables_with_0<M: Mode>(cx: &Context, mode: M) {
    let mut device = open(cx, 1 << 16);
    let map = intruder(&device);
    warm_up(&mut device, &map, mode);
    for count in COUNTS {
        mark_from(&map, count);
        let session = device.enable(mode).expect("enabled");
        recorded_here(&map, count);
        assert_eq!(session.trace().completeness(), Completeness::Complete);
        call();
        let trace = session.trace();
        assert_eq!(trace.completeness(), Completeness::Complete);
        let words = map.copy(1, trace.words().len());
        assert!(!trace.is_empty() && !words.iter().any(is_sentinel));
        drop(session);

        mark_from(&map, count);
        let session = device.into_session(mode).expect("enabled");
        recorded_here(&map, count);
        device = session.disable().expect("disabled").into_owner();
    }
}

/// Relies on the start of the disable request being recorded in the same way.
///
/// The kernel may add to some of these counts before the library loads them, if the thread is
/// preempted. So the count for readers may be greater than what was stored, but not every time.
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
            let is_stored_again = || {
                let session = device.enable(mode).expect("enabled");
                mark_from(&map, count);
                if is_dropped {
                    drop(session);
                } else {
                    let recorded = session.disable().expect("disabled");
                    assert_eq!(corrupt(recorded.trace().completeness()), Some(map.count()));
                }
                recorded_here(&map, count);
                let added = map.count().checked_sub(count).expect("stored again for readers");
                assert!(added < map.words() as u64, "{added} records fit");
                added == 0
            };
            assert!(at_times(is_stored_again), "the count that was stored");
        }
        let session = device.into_session(mode).expect("enabled");
        mark_from(&map, count);
        device = session.disable().expect("disabled").into_owner();
        recorded_here(&map, count);

        // The device ends a leaked session.
        let mut leaked = open(cx, 1 << 16);
        let map = intruder(&leaked);
        std::mem::forget(leaked.enable(mode).expect("enabled"));
        mark_from(&map, count);
        drop(leaked);
        recorded_here(&map, count);
    }
}

pub(crate) const CHECKS: &[Check] = &[
    on_crate("api.hostile.count-beyond-the-buffer-is-corrupt", 1, |_, mut device| {
        let map = intruder(&device);
        warm_up(&mut device, &map, TracePc);
        // Records of an earlier session, which must not appear.
        map.fill(1, 7);
        let counts = [device.words() as u64, 1 << 31, 1 << 32, 1 << 63, u64::MAX - 1];
        for count in counts.into_iter().filter(|count| fits(*count)) {
            let session = enable(&mut device);
            map.store(0, count);
            let trace = session.trace();
            assert_eq!(corrupt(trace.completeness()), Some(count));
            assert!(trace.is_empty() && !trace.is_truncated());
            assert_eq!((trace.iter().count(), trace.get(0), trace.words().len()), (0, None, 0));
            let recorded = session.disable().expect("disabled");
            let trace = recorded.trace();
            assert_eq!((trace.len(), corrupt(trace.completeness())), (0, Some(count)));
            let is_empty = || {
                map.store(0, count);
                let recorded = enable(&mut device).disable().expect("disabled");
                let trace = recorded.trace();
                assert_eq!(trace.completeness(), Completeness::Complete);
                trace.is_empty()
            };
            // On NetBSD, a preemption during the session adds records of the context switch.
            assert!(at_times(is_empty), "{count:#x} does not reach the next session");
        }
    }),
    check("api.hostile.count-of-comparisons-beyond-the-buffer-is-corrupt", |cx| {
        // The count is stored after the session, since some kernels trust it in comparison mode.
        let mut device = open(cx, 1);
        let map = intruder(&device);
        let buffer = device.child_buffer(TraceCmp).expect("it is free");
        map.holds_comparisons();
        let most = (map.words() as u64 - 1) / 4;
        for count in [most + 1, 1 << 59, (1 << 62) - 1, u64::MAX] {
            map.store(0, count);
            let trace = left(&buffer);
            assert_eq!(corrupt(trace.completeness()), Some(count));
            assert_eq!((trace.iter().count(), trace.is_truncated()), (0, false));
        }
    }),
    on_crate("api.hostile.full-is-not-corrupt", 1, |_, mut device| {
        let (map, most) = (intruder(&device), device.capacity(TracePc));
        let buffer = lend(&mut device);
        map.store(0, most as u64);
        let trace = left(&buffer);
        assert_eq!((trace.len(), trace.completeness()), (most, Completeness::Truncated));
        map.store(0, most as u64 - 1);
        assert_eq!(left(&buffer).completeness(), Completeness::Complete);
    }),
    check("api.hostile.request-that-enables", |cx| enables_with_0(cx, TracePc)),
    check("api.hostile.request-that-enables-comparisons", |cx| enables_with_0(cx, TraceCmp)),
    check("api.hostile.request-that-disables", |cx| disables_with_0(cx, TracePc)),
    check("api.hostile.request-that-disables-comparisons", |cx| disables_with_0(cx, TraceCmp)),
    on_crate("api.hostile.buffer-for-children", 1 << 16, |_, mut device| {
        let map = intruder(&device);
        warm_up(&mut device, &map, TraceCmp);
        for count in COUNTS {
            // A hostile count before the buffer is lent, and another before a child enables.
            mark_from(&map, count);
            let mut buffer = device.child_buffer(TraceCmp).expect("it is free");
            recorded_here(&map, count);
            assert_eq!(map.count(), 0);
            let seen = child(|| {
                mark_from(&map, count);
                let session = buffer.enable().expect("enabled in the child");
                recorded_here(&map, count);
                call();
                session.disable().expect("disabled").trace().len()
            });
            assert!(seen > 0);
            assert_eq!(left(&buffer).len(), seen);
        }
    }),
];
