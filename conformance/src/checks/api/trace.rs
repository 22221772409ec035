//! Reading what the kernel wrote, and what it did not.

use super::{enable, intruder, open};
use crate::checks::prelude::*;
use kcov::mode::TraceCmp;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const CHECKS: &[Check] = &[
    check("api.trace.full-buffer-is-truncated", |cx| {
        let mut device = open(cx, 1);
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
    check("api.trace.full-buffer-of-comparisons-is-truncated", |cx| {
        let mut device = open(cx, 1);
        let session = device.enable(TraceCmp).expect("enabled");
        (0..1000).for_each(|_| call());
        let recorded = session.disable().expect("disabled");
        let trace = recorded.trace();
        assert!(trace.is_truncated());
        assert_eq!((trace.len(), trace.iter().count()), (trace.capacity(), trace.capacity()));
    }),
    check("api.trace.count-is-read-once", |cx| {
        let mut device = open(cx, 1 << 16);
        let session = enable(&mut device);
        call();
        let trace = session.trace();
        let records: Vec<_> = trace.iter().collect();
        call();
        assert!(session.trace().len() > records.len());
        assert_eq!(trace.iter().collect::<Vec<_>>(), records);
    }),
    check("api.trace.scribbled-buffer-is-read-safely", |cx| {
        let mut device = open(cx, 1);
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
