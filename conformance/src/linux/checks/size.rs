//! `KCOV_INIT_TRACE`.

use super::LARGE;
use crate::checks::prelude::*;
use crate::errno::Errno;
use kcov_sys::linux::{KCOV_INIT_TRACE_MIN, kcov_init_trace_max};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Uid, setuid};
use std::sync::Barrier;
use std::thread;

/// The maximum size in words.
pub(crate) fn max_words() -> u64 {
    kcov_init_trace_max(word_bytes() as u64)
}

pub(crate) const CHECKS: &[Check] = &[
    check("size.least", |cx| {
        let device = open(cx);
        assert_eq!(device.init_trace(KCOV_INIT_TRACE_MIN), Ok(()));
        // The device has a size now, but not that of a page.
        assert_eq!(device.init_trace(KCOV_INIT_TRACE_MIN), Err(Errno(libc::EBUSY)));
        assert_eq!(device.map(page_words()).map(drop), Err(Errno(libc::EINVAL)));
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        call();
        assert_eq!(device.disable(), Ok(()));
    }),
    check("size.greatest", |cx| {
        // Every guest has this much.
        assert_eq!(open(cx).init_trace((48 << 20) / word_bytes() as u64), Ok(()));
        // 2 GiB. A kernel without that much memory logs a warning that looks like a fault.
        let tried = with_console_off(|| open(cx).init_trace(max_words()));
        assert!(matches!(tried, Ok(()) | Err(Errno(libc::ENOMEM))), "{tried:?}");
    }),
    check("size.far-above-greatest-is-refused", |cx| {
        // The last one becomes 512 if truncated to 32 bits.
        for words in [u64::MAX, 1 << 63, 1 << 61, (1 << 32) + 512] {
            cx.refused_by(&open(cx), |device| device.init_trace(words));
        }
    }),
    check("size.large-buffer-is-zeroed", |cx| {
        // Each buffer may get the pages of the one before.
        for round in 0..4 {
            let (_device, map) = mapped_of(cx, LARGE);
            let other = (0..map.words()).find(|&word| map.load(word) != 0);
            assert_eq!(other, None, "round {round}");
            map.fill(0, SENTINEL);
        }
    }),
    check("size.second-time-by-other-thread-is-refused", |cx| {
        let (device, map) = mapped(cx);
        other_stays_traced(
            &map,
            || device.enable(KCOV_TRACE_PC),
            || {
                assert!(settled(&map) > 0, "it is traced before");
                cx.refused_by(&device, |device| device.init_trace(COVER_SIZE));
            },
        );
    }),
    slow("size.two-threads-at-once", 120, |cx| {
        // Allocating takes long enough that one processor too switches threads meanwhile.
        let words = (32 << 20) / word_bytes() as u64;
        for round in 0..20 {
            let device = open(cx);
            let both = Barrier::new(2);
            let size = || {
                both.wait();
                device.init_trace(words)
            };
            let results = thread::scope(|scope| {
                let other = scope.spawn(size);
                [size(), other.join().expect("the other thread")]
            });
            let [first, second] = results.map(Result::err);
            assert!(first.is_none() != second.is_none(), "round {round}: {results:?}");
            assert_eq!(first.or(second), Some(cx.errno()), "round {round}");
        }
    }),
    check("size.by-a-thread-that-collects", |cx| {
        let sizes = || {
            let device = open(cx);
            assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
            device.map(COVER_SIZE).expect("a buffer of that size");
        };
        let remote = sized(cx, COVER_SIZE);
        remote.remote_enable(&Remote::default()).expect("enabled");
        sizes();
        remote.disable().expect("disabled");
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        sizes();
        assert!(is_traced(&map), "it is traced as before");
    }),
    check("size.holder-of-a-descriptor-needs-no-privilege", |cx| {
        let device = open(cx);
        let (opened, sized) = child(|| {
            setrlimit(Resource::RLIMIT_MEMLOCK, 0, 0).expect("setrlimit");
            setuid(Uid::from_raw(65534)).expect("setuid");
            (Device::open(cx.device()).map(drop), device.init_trace(COVER_SIZE))
        });
        assert_eq!(opened, Err(Errno(libc::EACCES)), "it has no privilege");
        assert_eq!(sized, Ok(()));
        device.map(COVER_SIZE).expect("a buffer of that size");
    }),
];
