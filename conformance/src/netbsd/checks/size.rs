//! `KCOV_IOC_SETBUFSIZE`.

use super::{COVER_SIZE, GREATEST, open, sized};
use crate::check::{Context, checks};
use crate::raw::KCOV_TRACE_PC;
use kcov_sys::netbsd::{KCOV_BUF_MIN_ENTRIES, KCOV_IOC_SETBUFSIZE};
use std::ptr::from_ref;

checks! {
    "size.sets-the-buffer-size": sets_the_buffer_size,
    "size.is-read-through-a-pointer": is_read_through_a_pointer,
    "size.least": least,
    "size.greatest": greatest,
    "size.far-above-greatest-is-refused": far_above_greatest_is_refused,
    "size.enabled-comes-before-range": enabled_comes_before_range,
    "size.unreadable-argument-is-refused": unreadable_argument_is_refused,
}

fn sets_the_buffer_size(cx: &Context) {
    let device = open(cx);
    assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
    let map = device.map(COVER_SIZE).expect("a buffer of that size");
    map.store(map.words() - 1, 1);
    assert!(device.map(COVER_SIZE + 1).is_err(), "and no larger");
}

fn is_read_through_a_pointer(cx: &Context) {
    let device = open(cx);
    let entries: u64 = COVER_SIZE;
    let address = from_ref(&entries).expose_provenance();
    assert_eq!(device.request(KCOV_IOC_SETBUFSIZE, address), Ok(()));
    device.map(COVER_SIZE).expect("a buffer of that size");
    assert!(device.map(COVER_SIZE + 512).is_err(), "and no larger");
}

fn least(cx: &Context) {
    let device = open(cx);
    assert_eq!(device.init_trace(KCOV_BUF_MIN_ENTRIES), Ok(()));
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
}

fn greatest(cx: &Context) {
    let device = open(cx);
    assert_eq!(device.init_trace(GREATEST), Ok(()));
    let map = device.map(GREATEST).expect("all of it is mapped");
    map.store(map.words() - 1, 1);
}

fn far_above_greatest_is_refused(cx: &Context) {
    // The last two come out small if truncated to 32 bits or multiplied into bytes.
    for entries in [u64::MAX, 1 << 63, (1 << 32) + 512, (1 << 61) + 512] {
        cx.refused_by(&open(cx), |device| device.init_trace(entries));
    }
}

fn enabled_comes_before_range(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| device.init_trace(0));
    cx.refused_by(&device, |device| device.init_trace(GREATEST + 1));
}

fn unreadable_argument_is_refused(cx: &Context) {
    let device = open(cx);
    cx.refused_by(&device, |device| device.request(KCOV_IOC_SETBUFSIZE, 0));
    device.init_trace(COVER_SIZE).expect("it is still unsized");
}
