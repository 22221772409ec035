//! Sessions that own their device.

use super::*;

fn owned(cx: &Context) -> Session<TracePc> {
    open(cx, 1 << 16).into_session(TracePc).expect("enabled")
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.owned.thousands-of-cases", |cx| {
        let mut session = owned(cx);
        // While another file has this number, no request can reach the device.
        let number = descriptor(session.device());
        let kept = session.device().as_fd().try_clone_to_owned().expect("a second descriptor");
        let other = std::fs::File::open("/dev/null").expect("a file");
        // The session makes no request until it has its file back.
        take_number(number, &other);
        let (mut first, mut same) = (Vec::new(), 0);
        for case in 0..5000 {
            session.reset();
            call();
            let trace = session.trace();
            assert!(!trace.is_empty() && !trace.is_truncated(), "case {case}");
            let records: Vec<_> = trace.iter().collect();
            // The first cases fault in pages, and an interrupt may add records to some.
            same += usize::from(records == first);
            first = records;
        }
        take_number(number, &kept);
        assert!(same > 1000, "{same} cases were like the one before");
        drop(session.disable().expect("it was enabled all the time"));
        assert!(is_free(cx));
    }),
    check("api.owned.device-comes-back", |cx| {
        let (mut device, place) = open_at(cx, 1 << 16);
        let (number, map) = (descriptor(&device), intruder(&device));
        for _ in 0..3 {
            let session = device.into_session(TracePc).expect("enabled");
            call();
            let seen = session.trace().len();
            assert!(seen > 0);
            device = session.disable().expect("disabled").into_owner();
            assert!(map.count() >= seen as u64, "the records are there for others");
            assert!(is_free(cx));
        }
        assert_eq!(descriptor(&device), number);
        assert_eq!([place.start, place.end - 1].map(accessible), [(true, true); 2]);
    }),
    on_crate("api.owned.mode-is-switched", 1 << 16, |_, mut device| {
        for round in 0..20 {
            let mode = if round % 2 == 0 { AnyMode::TracePc } else { AnyMode::TraceCmp };
            let session = device.into_session(mode).expect("enabled");
            call();
            let trace = session.trace();
            assert!(!trace.is_empty());
            let is_pc = |record| matches!(record, AnyRecord::Pc(_));
            assert!(trace.iter().all(|record| is_pc(record) == (mode == AnyMode::TracePc)));
            device = session.disable().expect("disabled").into_owner();
        }
        let session = device.into_session(TraceCmp).expect("enabled");
        call();
        // Only type bits are set, unlike in a program counter.
        assert!(session.trace().iter().all(|comparison| comparison.raw_type() & !7 == 0));
    }),
    check("api.owned.dropped-in-every-order", |cx| {
        let before = descriptors();
        for other_first in [true, false] {
            let (session, mut other) = (owned(cx), Some(open(cx, 1)));
            if other_first {
                drop(other.take());
                call();
                assert!(!session.trace().is_empty(), "another device is another device");
            }
            drop(session);
            assert!(is_free(cx));
            drop(other);
        }
        drop(owned(cx).disable().expect("disabled"));
        assert!(is_free(cx));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _session = owned(cx);
            resume_unwind(Box::new("in a traced section"));
        }));
        assert!(panicked.is_err() && is_free(cx));
        assert_eq!(descriptors(), before);
        // The end of the thread ends a leaked session.
        thread(|| std::mem::forget(owned(cx)));
        assert!(is_free(cx));
        // `enable` borrows the device, `into_session` consumes it.
        let mut device = open(cx, 1);
        drop(device.enable(TracePc).expect("enabled"));
        drop(device.into_session(TracePc).expect("enabled"));
        assert!(is_free(cx));
    }),
    check("api.owned.refused-device-is-dropped", |cx| {
        let session = owned(cx);
        let before = descriptors();
        let (device, place) = open_at(cx, 4096);
        fails(device.into_session(TracePc), Operation::Enable, ErrorKind::AlreadyEnabled);
        assert_eq!((descriptors(), accessible(place.start)), (before, (false, false)));
        call();
        assert!(!session.trace().is_empty());
        drop(session);
        assert!(is_free(cx));
    }),
    check("api.owned.forked-child-drops-its-device", |cx| {
        let (device, place) = open_at(cx, 1 << 16);
        let session = device.into_session(TracePc).expect("enabled");
        call();
        let first: Vec<_> = session.trace().iter().take(3).collect();
        let mut session = Some(session);
        let refused = child(|| {
            let before = descriptors();
            let error = session.take().expect("the child's copy").disable();
            let error = error.expect_err("the child is not traced");
            assert_eq!((before - descriptors(), accessible(place.start)), (1, (false, false)));
            format!("{:?} {:?}", error.operation(), error.kind())
        });
        assert_eq!(refused, "Disable NotEnabled");
        let mut session = session.expect("the parent's");
        // Dropping the child's copy has not emptied the buffer either.
        assert_eq!(session.trace().iter().take(3).collect::<Vec<_>>(), first);
        // The fork may have filled it.
        session.reset();
        call();
        assert!(!session.trace().is_empty());
        drop(session.disable().expect("the parent is traced still"));
    }),
];
