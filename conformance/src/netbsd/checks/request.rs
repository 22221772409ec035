//! Requests that the driver does not know, and requests that older drivers do not know.

use crate::checks::prelude::*;
use kcov_sys::ioc::Encoding;
use kcov_sys::netbsd::{
    KCOV_IOC_DISABLE, KCOV_IOC_ENABLE, KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH,
    KCOV_IOC_SETBUFSIZE,
};
use std::ptr::from_ref;

const NETBSD: Encoding = Encoding::NETBSD;

/// Neighbours of the known numbers, known numbers with other arguments, and requests of other
/// devices. The kernel passes all of them to the driver.
const UNKNOWN: &[u32] = &[
    NETBSD.io(b'K', 0),
    NETBSD.io(b'K', 1),
    NETBSD.io(b'K', 2),
    NETBSD.io(b'K', 4),
    NETBSD.io(b'K', 9),
    NETBSD.io(b'K', 12),
    NETBSD.io(b'K', 255),
    NETBSD.io(b'L', 3),
    NETBSD.iow(b'K', 1, 4),
    NETBSD.iow(b'K', 2, 8),
    NETBSD.iow(b'K', 3, 4),
    Encoding::LINUX_GENERIC.io(b'c', 100),
    0,
];

/// Numbers that differ from a known one in a bit. The kernel passes no argument of over 4096 bytes
/// to a driver.
fn near_misses() -> impl Iterator<Item = u32> {
    const KNOWN: [u32; 5] = [
        KCOV_IOC_SETBUFSIZE,
        KCOV_IOC_ENABLE,
        KCOV_IOC_DISABLE,
        KCOV_IOC_REMOTE_ATTACH,
        KCOV_IOC_REMOTE_DETACH,
    ];
    let near = |number| (0..32).map(move |bit| number ^ (1 << bit));
    let is_unknown = |number: &u32| !KNOWN.contains(number) && number >> 16 & 0x1fff <= 4096;
    KNOWN.into_iter().flat_map(near).filter(is_unknown)
}

/// Issues each of them with an argument that points to memory.
#[track_caller]
pub(crate) fn unknown_are_refused(cx: &Context, device: &Device) {
    // The kernel reads as many bytes as the number says.
    let words = [1_u64; 512];
    let request =
        |device: &Device, number| device.request(number, from_ref(&words).expose_provenance());
    for &number in UNKNOWN {
        cx.refused_by(device, |device| request(device, number));
    }
    cx.refused_by(device, |device| {
        near_misses().for_each(|number| cx.refused(request(device, number)));
        request(device, 0)
    });
}

pub(crate) const CHECKS: &[Check] = &[check("request.remote-is-refused-as-unknown", |cx| {
    let words = [0_u64; 2];
    for number in [KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH] {
        cx.refused_by(&open(cx), |device| {
            device.request(number, from_ref(&words).expose_provenance())
        });
    }
})];
