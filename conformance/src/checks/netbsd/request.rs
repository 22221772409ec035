//! Requests that the driver does not know, and requests that older drivers do not know.

use super::open;
use crate::check::{Context, checks};
use crate::raw::Device;
use kcov_sys::ioc::Encoding;
use kcov_sys::netbsd::{KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH};
use std::ptr::from_ref;

checks! {
    remote_is_refused_as_unknown,
}

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

/// Issues each of them with an argument that points to memory.
#[track_caller]
pub(crate) fn unknown_are_refused(cx: &Context, device: &Device) {
    let words = [1_u64; 4];
    for &number in UNKNOWN {
        cx.refused_by(device, |device| {
            device.request(number, from_ref(&words).expose_provenance())
        });
    }
}

fn remote_is_refused_as_unknown(cx: &Context) {
    let words = [0_u64; 2];
    for number in [KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH] {
        cx.refused_by(&open(cx), |device| {
            device.request(number, from_ref(&words).expose_provenance())
        });
    }
}
