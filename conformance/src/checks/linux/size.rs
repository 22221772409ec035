//! `KCOV_INIT_TRACE`.

use super::{COVER_SIZE, open};
use crate::check::{Context, checks};
use crate::errno::Errno;
use crate::raw::{KCOV_TRACE_PC, call, page_words, with_console_off, word_bytes};
use kcov_sys::linux::{KCOV_INIT_TRACE_MIN, kcov_init_trace_max};

checks! {
    sets_the_buffer_size,
    least,
    greatest,
    far_above_greatest_is_refused needs(Long64),
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
