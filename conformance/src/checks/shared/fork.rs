//! Forked children.

use super::thread::added_by_calls;
use crate::checks::prelude::*;
use crate::errno::Result;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Tries to start a program that does not exist, with posix_spawn(3). Returns the error.
fn spawn_nothing() -> i32 {
    let name = c"/no/such/program";
    let arguments = [name.as_ptr().cast_mut(), null_mut()];
    let mut pid = 0;
    // SAFETY: the name ends with a null byte and both lists with a null pointer. All live until the
    // call returns.
    unsafe {
        libc::posix_spawn(
            &mut pid,
            name.as_ptr(),
            null(),
            null(),
            arguments.as_ptr(),
            [null_mut()].as_ptr(),
        )
    }
}

pub(crate) const CHECKS: &[Check] = &[
    check("fork.child-is-not-traced", |cx| {
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        // The parent blocks until the child sends its result.
        assert_eq!(child(|| added_by_calls(&map)), 0);
        assert!(map.count() > 0, "the parent is traced");
        // On Linux, posix_spawn(3) works like vfork(2).
        assert_eq!(spawn_nothing(), libc::ENOENT);
        assert!(is_traced(&map), "the parent is still traced");
    }),
    check("fork.child-enables-what-it-inherits", |cx| {
        let (device, map) = mapped(cx);
        let (count, first): (u64, u64) = child(|| {
            device.enable(KCOV_TRACE_PC).expect("enabled");
            map.reset();
            call();
            let seen = (map.count(), map.load(1));
            device.disable().expect("disabled");
            seen
        });
        assert!(count > 0);
        assert!(map.count() >= count, "the parent sees the child's count");
        assert_eq!(map.load(1), first, "and its records");
    }),
    check("fork.child-of-enabled-parent-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| child(|| device.enable(KCOV_TRACE_PC)));
    }),
    check("fork.child-exit-disables", |cx| {
        let (device, map) = mapped(cx);
        child(|| device.enable(KCOV_TRACE_PC)).expect("enabled in the child");
        assert!(map.count() > 0, "the child was traced");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    }),
    check("fork.killed-child-disables", |cx| {
        let (device, map) = mapped(cx);
        let enable = || device.enable(KCOV_TRACE_PC).expect("enabled");
        let endless: Child<()> = Child::endless(enable);
        assert!(wait_for(LONG, || map.count() > 0), "the child is traced");
        assert!(device.enable(KCOV_TRACE_PC).is_err(), "the child has it enabled");
        endless.kill();
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    }),
    check("fork.server-loop", |cx| {
        let (device, map) = mapped(cx);
        for round in 0..20 {
            map.reset();
            let enabled: Result<()> = child(|| {
                let enabled = device.enable(KCOV_TRACE_PC);
                call();
                enabled
            });
            assert_eq!(enabled, Ok(()), "round {round}");
            assert!(map.count() > 0, "round {round}");
        }
    }),
    check("fork.mapping-is-shared", |cx| {
        let is_shared = |map: &Map| {
            map.store(7, 1);
            let seen: u64 = child(|| {
                let seen = map.load(7);
                map.store(8, 2);
                seen
            });
            assert_eq!((seen, map.load(8)), (1, 2));
        };
        let (device, map) = mapped(cx);
        is_shared(&map);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        let later = device.map(COVER_SIZE).expect("a mapping while it is enabled");
        // The count leaves no room for records.
        later.store(0, COVER_SIZE);
        is_shared(&later);
    }),
    check("fork.parent-reads-while-child-runs", |cx| {
        let (device, map) = mapped(cx);
        let endless: Child<()> = Child::start(|| {
            device.enable(KCOV_TRACE_PC).expect("enabled");
            loop {
                call();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        assert!(wait_for(LONG, || map.count() > 0), "the child is traced");
        let before = map.count();
        assert!(wait_for(LONG, || map.count() > before), "the count grows");
        endless.kill();
    }),
    check("fork.child-may-enable-another-device", |cx| {
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        let (enabled, count) = child(|| {
            let (other, map) = mapped(cx);
            let enabled = other.enable(KCOV_TRACE_PC);
            map.reset();
            call();
            (enabled, map.count())
        });
        assert_eq!(enabled, Ok(()), "the child inherits no busy state");
        assert!(count > 0);
        assert!(is_traced(&map), "the parent goes on");
    }),
];
