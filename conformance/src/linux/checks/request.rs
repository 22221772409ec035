//! Requests that the driver does not know, and those of programs with another word width.

use crate::checks::prelude::*;
use kcov_sys::ioc::Encoding;
use kcov_sys::linux::{
    KCOV_DISABLE, KCOV_ENABLE, KCOV_INIT_TRACE32, KCOV_INIT_TRACE64, KCOV_REMOTE_ENABLE,
};

const ENCODING: Encoding = Encoding::LINUX_NATIVE;

/// Neighbours of the known numbers, and requests of other devices.
const UNKNOWN: &[u32] = &[
    ENCODING.io(b'c', 0),
    ENCODING.io(b'c', 1),
    ENCODING.io(b'c', 99),
    ENCODING.io(b'c', 102),
    ENCODING.io(b'c', 255),
    ENCODING.io(b'd', 100),
    ENCODING.iow(b'c', 1, 8),
    ENCODING.iow(b'c', 100, 8),
    ENCODING.iow(b'c', 102, 16),
    ENCODING.ior(b'c', 102, 24),
    0x5401,
    0,
    u32::MAX,
];

fn known() -> [u32; 4] {
    [init_trace_request(), KCOV_ENABLE, KCOV_DISABLE, KCOV_REMOTE_ENABLE]
}

/// Numbers that differ from a known one in a bit.
fn near_misses() -> impl Iterator<Item = u32> {
    let known = known();
    let near = move |number| (0..32).map(move |bit| number ^ (1 << bit));
    known.into_iter().flat_map(near).filter(move |number| !known.contains(number))
}

/// Issues each of them with several kinds of arguments.
#[track_caller]
pub(crate) fn unknown_are_refused(cx: &Context, device: &Device) {
    for &number in UNKNOWN {
        cx.refused_by(device, |device| {
            cx.refused(device.request(number, 0));
            cx.refused(device.request(number, 1));
            device.request(number, 4096)
        });
    }
    cx.refused_by(device, |device| {
        near_misses().for_each(|number| cx.refused(device.request(number, 0)));
        device.request(0, 0)
    });
}

pub(crate) const CHECKS: &[Check] = &[
    check("request.every-other-number-is-refused", |cx| {
        let known = known();
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        for number in 0..=255 {
            let requests = [
                ENCODING.io(b'c', number),
                ENCODING.iow(b'c', number, 8),
                ENCODING.ior(b'c', number, 8),
            ];
            for request in requests.into_iter().filter(|request| !known.contains(request)) {
                map.store(0, 1000);
                cx.refused(device.request(request, 0));
                assert!(map.count() >= 1000, "request {request:#x} has emptied the trace");
            }
        }
        assert!(is_traced(&map), "it is still enabled");
    }),
    check("request.size-for-other-word-width-is-refused", |cx| {
        let other = if word_bytes() == 8 { KCOV_INIT_TRACE32 } else { KCOV_INIT_TRACE64 };
        let device = open(cx);
        cx.refused_by(&device, |device| device.request(other, 512));
        device.init_trace(512).expect("it is still unsized");
    }),
];
