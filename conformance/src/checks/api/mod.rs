//! Checks of the safe crate `kcov`: what its documentation promises, on a running kernel. Only here
//! does the suite use it. What only one system has is in its directory; the module stands in the
//! system's.

mod device;
mod faults;
mod fork_server;
mod session;
mod status;
mod trace;

use crate::check::{Check, Context};
use kcov::mode::TracePc;
use kcov::{BufferSize, Device, Error, Session};

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    device::CHECKS,
    session::CHECKS,
    trace::CHECKS,
    fork_server::CHECKS,
    faults::CHECKS,
    status::CHECKS,
];

/// An open device with a buffer of at least that many words.
pub(crate) fn open(cx: &Context, words: u64) -> Device {
    let size = BufferSize::words(words);
    Device::builder().path(cx.device()).size(size).open().expect("the device opens")
}

/// Whether this thread can be traced, so is not traced already.
pub(crate) fn is_free(cx: &Context) -> bool {
    match open(cx, 1).enable(TracePc) {
        Ok(_) => true,
        Err(error) if error.kind() == kcov::ErrorKind::AlreadyEnabled => false,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn enable(device: &mut Device) -> Session<'_, TracePc> {
    device.enable(TracePc).expect("enabled")
}

pub(crate) fn kind<T>(result: Result<T, Error>) -> kcov::ErrorKind {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.kind(),
    }
}
