//! One device for many children.

use super::{enable, intruder, is_free, kind, lend, open, with_device_of_a_living_thread};
use crate::check::{Context, checks};
use crate::raw::{Child, LONG, call, child, wait_for};
use kcov::mode::{TraceCmp, TracePc};
use kcov::{Completeness, ErrorKind};

checks! {
    "api.child-buffer.parent-reads-what-the-child-did": parent_reads_what_the_child_did,
    "api.child-buffer.child-that-ends-without-disabling": child_that_ends_without_disabling,
    "api.child-buffer.child-that-never-enables": child_that_never_enables,
    "api.child-buffer.many-children": many_children seconds(60),
    "api.child-buffer.parent-stays-untraced": parent_stays_untraced,
    "api.child-buffer.empty-after-another-mode": empty_after_another_mode,
    "api.child-buffer.device-of-a-living-thread-is-refused": device_of_a_living_thread_is_refused,
    "api.child-buffer.leaked-session-is-ended": leaked_session_is_ended,
    "api.child-buffer.killed-child": killed_child,
}

fn parent_reads_what_the_child_did(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut buffer = lend(&mut device);
    let seen: Vec<u64> = child(|| {
        let session = buffer.enable().expect("enabled in the child");
        call();
        let trace = session.disable().expect("disabled");
        trace.iter().map(u64::from).collect()
    });
    assert!(!seen.is_empty());
    assert_eq!(buffer.trace().iter().map(u64::from).collect::<Vec<_>>(), seen);
}

fn child_that_ends_without_disabling(cx: &Context) {
    let mut device = open(cx, 1 << 16);
    let mut buffer = lend(&mut device);
    for _ in 0..3 {
        let first: u64 = child(|| {
            let session = buffer.enable().expect("enabled in the child");
            call();
            let first = session.trace().get(0).expect("a record").address();
            std::mem::forget(session);
            first
        });
        assert_eq!(buffer.trace().get(0).expect("a record").address(), first);
        assert!(buffer.trace().len() > 1);
    }
}

fn child_that_never_enables(cx: &Context) {
    let mut device = open(cx, 4096);
    drop(enable(&mut device));
    let mut buffer = lend(&mut device);
    for _ in 0..3 {
        // A child leaves records, which must not count for the next one.
        child(|| {
            let session = buffer.enable().expect("enabled in the child");
            call();
            std::mem::forget(session);
        });
        assert!(!buffer.trace().is_empty());
        buffer.reset().expect("reset");
        assert!(buffer.trace().is_empty());
        child(call);
        assert!(buffer.trace().is_empty());
    }
}

fn many_children(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut buffer = lend(&mut device);
    for round in 0..100 {
        buffer.reset().expect("reset");
        // The page faults of a new child are recorded too, so there are records without any call.
        let length = child(|| {
            let session = buffer.enable().expect("enabled in the child");
            for _ in 0..round % 3 {
                call();
            }
            session.disable().expect("disabled").len() as u64
        });
        assert_eq!(buffer.trace().len() as u64, length, "round {round}");
    }
}

fn parent_stays_untraced(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut buffer = lend(&mut device);
    let length = child(|| {
        let session = buffer.enable().expect("enabled in the child");
        call();
        session.disable().expect("disabled").len() as u64
    });
    call();
    assert_eq!(buffer.trace().len() as u64, length);
}

fn empty_after_another_mode(cx: &Context) {
    let mut device = open(cx, 1 << 16);
    let map = intruder(&device);
    for _ in 0..2 {
        let session = enable(&mut device);
        (0..8).for_each(|_| call());
        assert!(session.disable().expect("disabled").len() > 8);
        let mut buffer = device.child_buffer(TraceCmp).expect("it is free");
        assert!(buffer.trace().is_empty());
        assert_eq!((buffer.trace().completeness(), map.count()), (Completeness::Complete, 0));
        let seen = child(|| {
            let session = buffer.enable().expect("enabled in the child");
            call();
            session.disable().expect("disabled").len()
        });
        assert!(seen > 0);
        let trace = buffer.trace();
        assert_eq!(trace.iter().filter(|comparison| comparison.raw_type() & !7 == 0).count(), seen);
    }
}

fn device_of_a_living_thread_is_refused(cx: &Context) {
    with_device_of_a_living_thread(cx, |device, _| {
        let refused = device.into_child_buffer(TracePc).expect_err("a thread is traced into it");
        assert_eq!(refused.error().kind(), ErrorKind::AlreadyEnabled);
        let mut device = refused.into_device();
        assert_eq!(kind(device.child_buffer(TracePc)), ErrorKind::AlreadyEnabled);
    });
}

fn leaked_session_is_ended(cx: &Context) {
    let mut device = open(cx, 4096);
    std::mem::forget(enable(&mut device));
    call();
    let buffer = lend(&mut device);
    assert!(is_free(cx), "this thread's session has ended");
    call();
    assert!(buffer.trace().is_empty());
}

fn killed_child(cx: &Context) {
    let mut buffer = open(cx, 4096).into_child_buffer(TracePc).expect("it is free");
    for _ in 0..3 {
        buffer.reset().expect("reset");
        let pid = Child::<()>::start(|| {
            let _session = buffer.enable().expect("enabled in the child");
            loop {
                call();
            }
        });
        assert!(wait_for(LONG, || !buffer.trace().is_empty()), "it records");
        pid.kill();
        let trace = buffer.trace();
        assert!(!trace.is_empty());
        assert_eq!(trace.iter().count(), trace.len());
    }
    let mut device = buffer.into_device();
    drop(enable(&mut device));
}
