//! One device for many children.

use super::{enable, open};
use crate::check::{Context, checks};
use crate::raw::{call, child};
use kcov::mode::TracePc;

checks! {
    parent_reads_what_the_child_did,
    child_that_ends_without_disabling,
    child_that_never_enables,
    many_children seconds(60),
    parent_stays_untraced,
}

fn parent_reads_what_the_child_did(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut server = device.fork_server(TracePc);
    let seen: Vec<u64> = child(|| {
        let session = server.enable().expect("enabled in the child");
        call();
        let trace = session.disable().expect("disabled");
        trace.iter().map(u64::from).collect()
    });
    assert!(!seen.is_empty());
    assert_eq!(server.trace().iter().map(u64::from).collect::<Vec<_>>(), seen);
}

fn child_that_ends_without_disabling(cx: &Context) {
    let mut device = open(cx, 1 << 16);
    let mut server = device.fork_server(TracePc);
    for _ in 0..3 {
        let first: u64 = child(|| {
            let session = server.enable().expect("enabled in the child");
            call();
            let first = session.trace().get(0).expect("a record").address();
            std::mem::forget(session);
            first
        });
        assert_eq!(server.trace().get(0).expect("a record").address(), first);
        assert!(server.trace().len() > 1);
    }
}

fn child_that_never_enables(cx: &Context) {
    let mut device = open(cx, 4096);
    drop(enable(&mut device));
    let mut server = device.fork_server(TracePc);
    server.reset();
    child(call);
    assert!(server.trace().is_empty());
}

fn many_children(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut server = device.fork_server(TracePc);
    for round in 0..100 {
        server.reset();
        // The page faults of a fresh child are recorded too, so even no call leaves some records.
        let length = child(|| {
            let session = server.enable().expect("enabled in the child");
            for _ in 0..round % 3 {
                call();
            }
            session.disable().expect("disabled").len() as u64
        });
        assert_eq!(server.trace().len() as u64, length, "round {round}");
    }
}

fn parent_stays_untraced(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut server = device.fork_server(TracePc);
    let length = child(|| {
        let session = server.enable().expect("enabled in the child");
        call();
        session.disable().expect("disabled").len() as u64
    });
    call();
    assert_eq!(server.trace().len() as u64, length);
}
