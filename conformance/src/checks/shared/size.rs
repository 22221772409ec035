//! `KCOV_INIT_TRACE`.

use super::full::is_filled;
use super::{COVER_SIZE, mapped, open, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, call, page_words};
use crate::system::checks::max_words;

checks! {
    "size.zero-is-refused": zero_is_refused,
    "size.one-is-refused": one_is_refused,
    "size.above-greatest-is-refused": above_greatest_is_refused,
    "size.need-not-be-whole-pages": need_not_be_whole_pages,
    "size.buffer-is-zeroed": buffer_is_zeroed,
    "size.second-time-is-refused": second_time_is_refused,
    "size.second-time-other-size-is-refused": second_time_other_size_is_refused,
    "size.second-time-while-enabled-is-refused": second_time_while_enabled_is_refused,
    "size.second-time-after-disable-is-refused": second_time_after_disable_is_refused,
    "size.range-comes-before-state": range_comes_before_state,
    "size.refusal-leaves-device-unsized": refusal_leaves_device_unsized,
}

fn zero_is_refused(cx: &Context) {
    cx.refused_by(&open(cx), |device| device.init_trace(0));
}

fn one_is_refused(cx: &Context) {
    cx.refused_by(&open(cx), |device| device.init_trace(1));
}

fn above_greatest_is_refused(cx: &Context) {
    cx.refused_by(&open(cx), |device| device.init_trace(max_words() + 1));
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
    cx.refused_by(&sized(cx, COVER_SIZE), |device| device.init_trace(COVER_SIZE));
}

fn second_time_other_size_is_refused(cx: &Context) {
    let (device, map) = mapped(cx);
    cx.refused_by(&device, |device| device.init_trace(2 * COVER_SIZE));
    assert!(device.map(COVER_SIZE + page_words()).is_err(), "the first size holds");
    cx.refused_by(&device, |device| device.init_trace(COVER_SIZE / 2));
    device.map(COVER_SIZE).expect("the first size holds");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    is_filled(&map);
}

fn second_time_while_enabled_is_refused(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    for words in [COVER_SIZE, COVER_SIZE / 2, 2 * COVER_SIZE] {
        cx.refused_by(&device, |device| device.init_trace(words));
    }
    is_filled(&map);
}

fn second_time_after_disable_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.disable().expect("disabled");
    cx.refused_by(&device, |device| device.init_trace(COVER_SIZE));
}

fn range_comes_before_state(cx: &Context) {
    let (device, map) = mapped(cx);
    cx.refused_by(&device, |device| device.init_trace(0));
    cx.refused_by(&device, |device| device.init_trace(max_words() + 1));
    device.enable(KCOV_TRACE_PC).expect("enabled");
    is_filled(&map);
}

fn refusal_leaves_device_unsized(cx: &Context) {
    let device = open(cx);
    assert!(device.init_trace(0).is_err());
    assert!(device.map(page_words()).is_err());
    assert_eq!(device.init_trace(page_words()), Ok(()));
}
