//! Forked children.

use super::thread::added_by_calls;
use super::*;
use std::ptr::{null, null_mut};

/// Tries to start a program that does not exist, with posix_spawn(3). Returns the error.
fn spawn_nothing() -> i32 {
    let name = c"/no/such/program".as_ptr();
    let (arguments, environment) = ([name.cast_mut(), null_mut()], [null_mut()]);
    let (arguments, environment) = (arguments.as_ptr(), environment.as_ptr());
    let mut pid = 0;
    // SAFETY: the name ends with a null byte and both lists with a null pointer. All live until the
    // call returns.
    unsafe { libc::posix_spawn(&mut pid, name, null(), null(), arguments, environment) }
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("fork.child-is-not-traced", collecting_pc, |_, _device, map| {
        // The parent blocks until the child sends its result.
        assert_eq!(child(|| added_by_calls(&map)), 0);
        assert!(map.count() > 0, "the parent is traced");
        // On Linux, posix_spawn(3) works like vfork(2).
        assert_eq!(spawn_nothing(), libc::ENOENT);
        assert!(is_traced(&map), "the parent is still traced");
    }),
    on_buffer("fork.child-enables-what-it-inherits", mapped, |_, device, map| {
        let (count, first): (u64, u64) = child(|| {
            traces(&device, &map);
            let seen = (map.count(), map.load(1));
            device.disable().expect("disabled");
            seen
        });
        assert!(map.count() >= count, "the parent sees the child's count");
        assert_eq!(map.load(1), first, "and its records");
    }),
    on_device("fork.child-of-enabled-parent-is-refused", enabled_pc, |cx, device| {
        cx.refused_by(&device, |device| child(|| device.enable(KCOV_TRACE_PC)));
    }),
    on_buffer("fork.child-exit-disables", mapped, |_, device, map| {
        child(|| device.enable(KCOV_TRACE_PC)).expect("enabled in the child");
        assert!(map.count() > 0, "the child was traced");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    }),
    on_buffer("fork.killed-child-disables", mapped, |_, device, map| {
        let enable = || device.enable(KCOV_TRACE_PC).expect("enabled");
        let endless: Child<()> = Child::endless(enable);
        assert!(wait_for(LONG, || map.count() > 0), "the child is traced");
        assert!(device.enable(KCOV_TRACE_PC).is_err(), "the child has it enabled");
        endless.kill();
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    }),
    on_buffer("fork.server-loop", mapped, |_, device, map| {
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
    on_buffer("fork.parent-reads-while-child-runs", mapped, |_, device, map| {
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
    on_buffer("fork.child-may-enable-another-device", collecting_pc, |cx, _device, map| {
        child(|| {
            let (other, map) = mapped(cx);
            assert_eq!(other.enable(KCOV_TRACE_PC), Ok(()), "the child inherits no busy state");
            assert!(is_traced(&map));
        });
        assert!(is_traced(&map), "the parent goes on");
    }),
];
