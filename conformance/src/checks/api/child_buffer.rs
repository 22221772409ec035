//! One device for many children.

use super::*;

pub(crate) const CHECKS: &[Check] = &[
    on_crate("api.child-buffer.parent-reads-what-the-child-did", 4096, |_, mut device| {
        let mut buffer = lend(&mut device);
        let seen = seen_by_child(&mut buffer);
        assert!(!seen.is_empty());
        assert_eq!(addresses(&left(&buffer)), seen);
    }),
    on_crate("api.child-buffer.child-that-ends-without-disabling", 1 << 16, |_, mut device| {
        let mut buffer = lend(&mut device);
        for _ in 0..3 {
            let first: u64 = child(|| {
                let session = buffer.enable().expect("enabled in the child");
                call();
                let first = session.trace().get(0).expect("a record").address();
                std::mem::forget(session);
                first
            });
            assert_eq!(left(&buffer).get(0).expect("a record").address(), first);
            assert!(left(&buffer).len() > 1);
        }
    }),
    on_crate("api.child-buffer.child-that-never-enables", 4096, |_, mut device| {
        drop(enable(&mut device));
        let mut buffer = lend(&mut device);
        for _ in 0..3 {
            // A child leaves records, which must not count for the next one.
            child(|| {
                let session = buffer.enable().expect("enabled in the child");
                call();
                std::mem::forget(session);
            });
            assert!(!left(&buffer).is_empty());
            buffer.reset();
            assert!(left(&buffer).is_empty());
            child(call);
            assert!(left(&buffer).is_empty());
        }
    }),
    slow("api.child-buffer.many-children", 60, |cx| {
        let mut device = open(cx, 4096);
        let mut buffer = lend(&mut device);
        for round in 0..100 {
            buffer.reset();
            // The page faults of a new child are recorded too, so there are records
            // without any call.
            let length = child(|| {
                let session = buffer.enable().expect("enabled in the child");
                for _ in 0..round % 3 {
                    call();
                }
                session.disable().expect("disabled").trace().len() as u64
            });
            assert_eq!(left(&buffer).len() as u64, length, "round {round}");
        }
    }),
    on_crate("api.child-buffer.parent-stays-untraced", 4096, |_, mut device| {
        let mut buffer = lend(&mut device);
        let length = seen_by_child(&mut buffer).len();
        call();
        assert_eq!(left(&buffer).len(), length);
    }),
    on_crate("api.child-buffer.empty-after-another-mode", 1 << 16, |_, mut device| {
        let map = intruder(&device);
        for _ in 0..2 {
            let session = enable(&mut device);
            (0..8).for_each(|_| call());
            assert!(session.disable().expect("disabled").trace().len() > 8);
            let mut buffer = device.child_buffer(TraceCmp).expect("it is free");
            assert!(left(&buffer).is_empty());
            assert_eq!((left(&buffer).completeness(), map.count()), (Completeness::Complete, 0));
            let seen =
                child(|| of_a_call(buffer.enable().expect("enabled in the child")).trace().len());
            assert!(seen > 0);
            let trace = left(&buffer);
            let mut types = trace.iter().map(kcov::Comparison::raw_type);
            assert!(trace.len() == seen && types.all(|of| of & !7 == 0));
        }
    }),
    check("api.child-buffer.device-of-a-living-thread-is-refused", |cx| {
        with_device_of_a_living_thread(cx, |mut device, _| {
            assert_eq!(kind(device.child_buffer(TracePc)), ErrorKind::AlreadyEnabled);
            assert_eq!(kind(device.into_child_buffer(TracePc)), ErrorKind::AlreadyEnabled);
        });
    }),
    on_crate("api.child-buffer.leaked-session-is-ended", 4096, |cx, mut device| {
        std::mem::forget(enable(&mut device));
        call();
        let buffer = lend(&mut device);
        assert!(is_free(cx), "this thread's session has ended");
        call();
        assert!(left(&buffer).is_empty());
    }),
    check("api.child-buffer.killed-child", |cx| {
        let mut buffer = open(cx, 4096).into_child_buffer(TracePc).expect("it is free");
        for _ in 0..3 {
            buffer.reset();
            let pid = Child::<()>::start(|| {
                let _session = buffer.enable().expect("enabled in the child");
                loop {
                    call();
                }
            });
            assert!(wait_for(LONG, || !left(&buffer).is_empty()), "it records");
            pid.kill();
            let trace = left(&buffer);
            assert!(!trace.is_empty());
            assert_eq!(trace.iter().count(), trace.len());
        }
        let mut device = buffer.into_device();
        drop(enable(&mut device));
    }),
    // The loop of the documentation of `ChildBuffer`, in which no child can enable.
    check("api.child-buffer.child-that-cannot-enable-ends", |cx| {
        const CASES: usize = 3;
        let mut device = open(cx, 4096);
        let second = device.as_fd().try_clone_to_owned().expect("a second descriptor");
        let mut buffer = lend(&mut device);
        // SAFETY: it is a kcov device of this size.
        let mut second =
            unsafe { Device::adopt(second, buffer.device().words()) }.expect("adopted");
        let session = enable(&mut second);
        let (out, into) = nix::unistd::pipe().expect("a pipe");
        for _ in 0..CASES {
            // SAFETY: the check is single-threaded, so no other thread holds a lock.
            let ForkResult::Parent { child } = unsafe { fork() }.expect("a child") else {
                let traced = buffer.enable();
                std::process::exit(if traced.is_ok() { 0 } else { 1 });
            };
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 1)), "it was refused");
            // Each process that gets here counts.
            assert_eq!(nix::unistd::write(&into, &[0]), Ok(1));
        }
        drop((session, into));
        let mut seen = Vec::new();
        std::fs::File::from(out).read_to_end(&mut seen).expect("the pipe");
        assert_eq!(seen.len(), CASES, "only the parent goes on");
        drop(buffer.enable().expect("enabled now"));
    }),
];
