//! `KCOV_INIT_TRACE`.

use super::{COVER_SIZE, LARGE, mapped, mapped_of, open, records, sized};
use crate::check::{Context, checks};
use crate::checks::shared::{SENTINEL, other_stays_traced};
use crate::errno::Errno;
use crate::raw::{
    Device, KCOV_TRACE_PC, Remote, call, child, page_words, settled, with_console_off, word_bytes,
};
use kcov_sys::linux::{KCOV_INIT_TRACE_MIN, kcov_init_trace_max};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Uid, setuid};
use std::sync::Barrier;
use std::thread;

checks! {
    "size.sets-the-buffer-size": sets_the_buffer_size,
    "size.least": least,
    "size.greatest": greatest,
    "size.far-above-greatest-is-refused": far_above_greatest_is_refused,
    "size.large-buffer-is-zeroed": large_buffer_is_zeroed,
    "size.second-time-by-other-thread-is-refused": second_time_by_other_thread_is_refused,
    "size.two-threads-at-once": two_threads_at_once seconds(120),
    "size.by-a-thread-that-collects": by_a_thread_that_collects,
    "size.holder-of-a-descriptor-needs-no-privilege": holder_of_a_descriptor_needs_no_privilege,
}

/// The maximum size in words.
pub(crate) fn max_words() -> u64 {
    kcov_init_trace_max(word_bytes() as u64)
}

fn sets_the_buffer_size(cx: &Context) {
    let device = open(cx);
    assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
    let map = device.map(COVER_SIZE).expect("a buffer of that size");
    map.store(map.words() - 1, 1);
    assert!(device.map(COVER_SIZE / 2).is_err(), "and of no other");
}

fn least(cx: &Context) {
    let device = open(cx);
    assert_eq!(device.init_trace(KCOV_INIT_TRACE_MIN), Ok(()));
    // The device has a size now, but not that of a page.
    assert_eq!(device.init_trace(KCOV_INIT_TRACE_MIN), Err(Errno(libc::EBUSY)));
    assert_eq!(device.map(page_words()).map(drop), Err(Errno(libc::EINVAL)));
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    call();
    assert_eq!(device.disable(), Ok(()));
}

fn greatest(cx: &Context) {
    // Every guest has this much.
    assert_eq!(open(cx).init_trace((48 << 20) / word_bytes() as u64), Ok(()));
    // 2 GiB. A kernel without that much memory logs a warning that looks like a fault.
    let tried = with_console_off(|| open(cx).init_trace(max_words()));
    assert!(matches!(tried, Ok(()) | Err(Errno(libc::ENOMEM))), "{tried:?}");
}

fn far_above_greatest_is_refused(cx: &Context) {
    // The last one becomes 512 if truncated to 32 bits.
    for words in [u64::MAX, 1 << 63, 1 << 61, (1 << 32) + 512] {
        cx.refused_by(&open(cx), |device| device.init_trace(words));
    }
}

fn large_buffer_is_zeroed(cx: &Context) {
    // Each buffer may get the pages of the one before.
    for round in 0..4 {
        let (_device, map) = mapped_of(cx, LARGE);
        let other = (0..map.words()).find(|&word| map.load(word) != 0);
        assert_eq!(other, None, "round {round}");
        map.fill(0, SENTINEL);
    }
}

fn second_time_by_other_thread_is_refused(cx: &Context) {
    let (device, map) = mapped(cx);
    other_stays_traced(
        &map,
        || device.enable(KCOV_TRACE_PC),
        || {
            assert!(settled(&map) > 0, "it is traced before");
            cx.refused_by(&device, |device| device.init_trace(COVER_SIZE));
        },
    );
}

fn two_threads_at_once(cx: &Context) {
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
}

fn by_a_thread_that_collects(cx: &Context) {
    let sizes = || {
        let device = open(cx);
        assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
        device.map(COVER_SIZE).expect("a buffer of that size");
    };
    let remote = sized(cx, COVER_SIZE);
    remote.remote_enable(&Remote::default()).expect("enabled");
    sizes();
    remote.disable().expect("disabled");
    let (local, map) = mapped(cx);
    local.enable(KCOV_TRACE_PC).expect("enabled");
    sizes();
    assert!(records(&map), "it is traced as before");
}

fn holder_of_a_descriptor_needs_no_privilege(cx: &Context) {
    let device = open(cx);
    let (opened, sized) = child(|| {
        setrlimit(Resource::RLIMIT_MEMLOCK, 0, 0).expect("setrlimit");
        setuid(Uid::from_raw(65534)).expect("setuid");
        (Device::open(cx.device()).map(drop), device.init_trace(COVER_SIZE))
    });
    assert_eq!(opened, Err(Errno(libc::EACCES)), "it has no privilege");
    assert_eq!(sized, Ok(()));
    device.map(COVER_SIZE).expect("a buffer of that size");
}
