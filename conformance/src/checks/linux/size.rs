//! `KCOV_INIT_TRACE`.

use super::{COVER_SIZE, mapped, open, sized};
use crate::check::{Context, checks};
use crate::errno::Errno;
use crate::raw::{KCOV_TRACE_PC, call, page_words, with_console_off};
use kcov_sys::linux::{KCOV_INIT_TRACE_MIN, kcov_init_trace_max};

checks! {
    sets_the_buffer_size,
    zero_is_refused,
    one_is_refused,
    least,
    greatest,
    above_greatest_is_refused,
    far_above_greatest_is_refused needs(Long64),
    need_not_be_whole_pages,
    buffer_is_zeroed,
    second_time_is_refused,
    second_time_other_size_is_refused,
    second_time_while_enabled_is_refused,
    second_time_after_disable_is_refused,
    range_comes_before_state,
    refusal_leaves_device_unsized,
}

const GREATEST: u64 = kcov_init_trace_max(8);

fn sets_the_buffer_size(cx: &Context) {
    let device = open(cx);
    assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
    let map = device.map(COVER_SIZE).expect("a buffer of that size");
    map.store(map.words() - 1, 1);
    assert!(device.map(COVER_SIZE / 2).is_err(), "and of no other");
}

fn zero_is_refused(cx: &Context) {
    cx.refused(open(cx).init_trace(0));
}

fn one_is_refused(cx: &Context) {
    cx.refused(open(cx).init_trace(KCOV_INIT_TRACE_MIN - 1));
}

fn least(cx: &Context) {
    let device = open(cx);
    assert_eq!(device.init_trace(KCOV_INIT_TRACE_MIN), Ok(()));
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
}

fn greatest(cx: &Context) {
    // Two gigabytes. A kernel that has not got them complains, as if there were a fault.
    let tried = with_console_off(|| open(cx).init_trace(GREATEST));
    assert!(matches!(tried, Ok(()) | Err(Errno(libc::ENOMEM))), "{tried:?}");
}

fn above_greatest_is_refused(cx: &Context) {
    cx.refused(open(cx).init_trace(GREATEST + 1));
}

fn far_above_greatest_is_refused(cx: &Context) {
    // The last one is 512 if only its lower half counts.
    for words in [u64::MAX, 1 << 63, 1 << 61, (1 << 32) + 512] {
        cx.refused(open(cx).init_trace(words));
    }
}

fn need_not_be_whole_pages(cx: &Context) {
    for words in [3, page_words() - 1, page_words() + 1] {
        let device = sized(cx, words);
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "{words} words");
        call();
        assert_eq!(device.disable(), Ok(()), "{words} words");
    }
}

fn buffer_is_zeroed(cx: &Context) {
    let (_device, map) = mapped(cx);
    assert!(map.copy(0, map.words()).iter().all(|&word| word == 0));
}

fn second_time_is_refused(cx: &Context) {
    cx.refused(sized(cx, COVER_SIZE).init_trace(COVER_SIZE));
}

fn second_time_other_size_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    cx.refused(device.init_trace(COVER_SIZE / 2));
    device.map(COVER_SIZE).expect("the first size holds");
}

fn second_time_while_enabled_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused(device.init_trace(COVER_SIZE));
}

fn second_time_after_disable_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.disable().expect("disabled");
    cx.refused(device.init_trace(COVER_SIZE));
}

fn range_comes_before_state(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    cx.refused(device.init_trace(0));
    cx.refused(device.init_trace(GREATEST + 1));
}

fn refusal_leaves_device_unsized(cx: &Context) {
    let device = open(cx);
    assert!(device.init_trace(0).is_err());
    assert!(device.map(page_words()).is_err());
    assert_eq!(device.init_trace(page_words()), Ok(()));
}
