//! Enabling, every way for a session to end, and traces.

use super::*;
use std::sync::atomic::AtomicBool;

/// Runs through a whole session once, because the page faults of code that runs for the first time
/// are recorded like system calls.
fn warm_up(device: &mut Device) {
    let mut session = enable(device);
    call();
    session.reset();
    assert!(session.trace().get(usize::MAX).is_none());
    session.disable().expect("disabled");
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.session.pcs-of-one-call", |cx| {
        // Leaves room for the page faults of the first run.
        let mut device = open(cx, 1 << 16);
        let recorded = of_a_call(enable(&mut device));
        let trace = recorded.trace();
        assert!(!trace.is_empty() && !trace.is_truncated());
        for pc in trace.iter() {
            // Kernel text is in the upper half, except for User-Mode Linux, which is a program.
            assert!(pc.address() > 0x10000, "{pc}");
        }
        let twice: Vec<_> = trace.iter().collect();
        assert_eq!(twice, trace.iter().collect::<Vec<_>>());
    }),
    on_crate("api.session.comparisons-of-one-call", 1 << 16, |_, mut device| {
        let recorded = of_a_call(device.enable(TraceCmp).expect("enabled"));
        let trace = recorded.trace();
        assert!(!trace.is_empty());
        for comparison in trace.iter() {
            assert_eq!(comparison.raw_type() & !7, 0, "{comparison:?}");
            let (first, second) = comparison.operands();
            let bits = 8 * comparison.operand_size() as u32;
            let fits = |operand: u64| operand.checked_shr(bits).unwrap_or(0) == 0;
            // The compiler stores a negative case of a switch sign-extended.
            let case = comparison.is_const() && first >= u64::MAX << (bits - 1);
            assert!((fits(first) || case) && fits(second), "{comparison:?}");
        }
    }),
    on_crate("api.session.mode-chosen-at-run-time", 1 << 16, |_, mut device| {
        for mode in [AnyMode::TracePc, AnyMode::TraceCmp] {
            let recorded = of_a_call(device.enable(mode).expect("enabled"));
            let trace = recorded.trace();
            assert!(!trace.is_empty());
            let is_pc = |record| matches!(record, AnyRecord::Pc(_));
            assert!(trace.iter().all(|record| is_pc(record) == (mode == AnyMode::TracePc)));
        }
    }),
    on_crate("api.session.starts-empty", 4096, |_, mut device| {
        warm_up(&mut device);
        let starts_empty = at_times(|| {
            let session = enable(&mut device);
            let is_empty = session.trace().is_empty();
            call();
            assert!(!session.trace().is_empty());
            is_empty
        });
        assert!(starts_empty);
    }),
    on_crate("api.session.reset-starts-over", 4096, |_, mut device| {
        warm_up(&mut device);
        let mut session = enable(&mut device);
        let starts_over = at_times(|| {
            session.reset();
            call();
            let first = session.trace().get(0);
            session.reset();
            let is_empty = session.trace().is_empty();
            call();
            is_empty && first.is_some() && session.trace().get(0) == first
        });
        assert!(starts_over);
    }),
    on_crate("api.session.ends-where-disable-is-called", 4096, |_, mut device| {
        warm_up(&mut device);
        let mut lengths = (0, 0, 0);
        let ends = at_times(|| {
            let session = enable(&mut device);
            call();
            let before = session.trace().len();
            let after = session.disable().expect("disabled").trace().len();
            lengths = (before, after, intruder(&device).count() as usize);
            lengths.0 == lengths.1 && lengths.1 == lengths.2
        });
        assert!(ends, "before and after the request that disables, and the count: {lengths:?}");
    }),
    on_crate("api.session.disabled-on-drop", 1, |cx, mut device| {
        drop(enable(&mut device));
        assert!(is_free(cx));
    }),
    check("api.session.disabled-on-early-return", |cx| {
        fn fails(device: &mut Device) -> Result<(), kcov::Error> {
            let _session = device.enable(TracePc)?;
            Device::builder().path("/nowhere/kcov").open()?;
            Ok(())
        }
        let mut device = open(cx, 1);
        assert_eq!(fails(&mut device).expect_err("it fails").operation(), Operation::Open);
        assert!(is_free(cx));
        drop(device);
    }),
    on_crate("api.session.disabled-on-panic", 1, |cx, mut device| {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _session = enable(&mut device);
            std::panic::resume_unwind(Box::new("in a traced section"));
        }));
        assert!(panicked.is_err());
        assert!(is_free(cx));
        drop(enable(&mut device));
    }),
    on_crate("api.session.leaked-and-device-dropped", 1, |cx, mut device| {
        std::mem::forget(enable(&mut device));
        assert!(!is_free(cx), "leaked, so still traced");
        drop(device);
        assert!(is_free(cx), "the device disables as its last act");
    }),
    on_crate("api.session.leaked-and-device-kept", 1, |_, mut device| {
        std::mem::forget(enable(&mut device));
        assert_eq!(kind(device.enable(TracePc)), ErrorKind::AlreadyEnabled);
        call();
        assert!(intruder(&device).count() > 0, "the buffer is still there");
    }),
    check("api.session.second-device-on-one-thread", |cx| {
        let (mut first, mut second) = (open(cx, 1), open(cx, 1));
        let session = enable(&mut first);
        let error = second.enable(TracePc).map(drop).expect_err("refused");
        assert_eq!((error.kind(), error.path()), (ErrorKind::AlreadyEnabled, Some(cx.device())));
        drop(session);
        drop(enable(&mut second));
    }),
    on_crate("api.session.device-of-another-thread", 1, |_, mut device| {
        thread(|| {
            std::mem::forget(enable(&mut device));
            let refused = thread(|| kind(device.enable(TracePc)));
            assert_eq!(refused, ErrorKind::AlreadyEnabled);
        });
    }),
    on_crate("api.session.forked-child-is-not-the-owner", 4096, |_, mut device| {
        let session = enable(&mut device);
        let mut session = Some(session);
        let refused = child(|| {
            let session = session.take().expect("the child's copy");
            session.disable().expect_err("the child is not traced").to_string()
        });
        assert!(refused.contains("not enabled by this thread"), "{refused}");
        assert!(!of_a_call(session.expect("the parent's")).trace().is_empty());
    }),
    on_crate("api.session.modes-follow-each-other", 4096, |_, mut device| {
        for _ in 0..3 {
            assert!(!of_a_call(enable(&mut device)).trace().is_empty());
            assert!(!of_a_call(device.enable(TraceCmp).expect("enabled")).trace().is_empty());
        }
    }),
    on_crate("api.trace.full-buffer-is-truncated", 1, |_, mut device| {
        let mut session = enable(&mut device);
        // The first call also records page faults.
        call();
        session.reset();
        call();
        assert!(!session.trace().is_truncated());
        (0..1000).for_each(|_| call());
        let trace = session.trace();
        assert!(trace.is_truncated());
        assert_eq!((trace.len(), trace.iter().count()), (trace.capacity(), trace.capacity()));
        session.reset();
        call();
        assert!(!session.trace().is_truncated());
    }),
    on_crate("api.trace.full-buffer-of-comparisons-is-truncated", 1, |_, mut device| {
        let session = device.enable(TraceCmp).expect("enabled");
        (0..1000).for_each(|_| call());
        let recorded = session.disable().expect("disabled");
        let trace = recorded.trace();
        assert!(trace.is_truncated());
        assert_eq!((trace.len(), trace.iter().count()), (trace.capacity(), trace.capacity()));
    }),
    on_crate("api.trace.count-is-read-once", 1 << 16, |_, mut device| {
        let session = enable(&mut device);
        call();
        let trace = session.trace();
        let records: Vec<_> = trace.iter().collect();
        call();
        assert!(session.trace().len() > records.len());
        assert_eq!(trace.iter().collect::<Vec<_>>(), records);
    }),
    on_crate("api.trace.scribbled-buffer-is-read-safely", 1, |_, mut device| {
        let intruder = intruder(&device);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
                while !done.load(Ordering::Relaxed) {
                    for index in 0..intruder.words() {
                        noise = noise.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                        intruder.store(index, noise);
                    }
                }
            });
            let session = enable(&mut device);
            // With one processor, all calls could be over before the other thread writes.
            let is_corrupt =
                || matches!(session.trace().completeness(), Completeness::Corrupt { .. });
            assert!(wait_for(LONG, is_corrupt), "the other thread has written");
            for _ in 0..1000 {
                call();
                let trace = session.trace();
                assert_eq!(trace.iter().count(), trace.len());
                assert!(trace.len() <= trace.capacity());
            }
            done.store(true, Ordering::Relaxed);
        });
    }),
];
