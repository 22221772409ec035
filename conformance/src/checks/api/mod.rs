//! Checks of the safe crate `kcov`: what its documentation promises, on a running kernel. Only here
//! does the suite use it.

mod device;
mod fork_server;
mod remote;
mod session;
mod status;
mod trace;

use crate::check::{Check, Context};
use kcov::mode::TracePc;
use kcov::{BufferSize, Device, Error, Session};

/// The registry of claims, by file name.
pub const REGISTRY: (&str, &str) = ("api.toml", include_str!("../../../claims/api.toml"));

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    device::CHECKS,
    session::CHECKS,
    trace::CHECKS,
    fork_server::CHECKS,
    remote::CHECKS,
    status::CHECKS,
];

/// An open device with a buffer of at least that many words.
fn open(cx: &Context, words: u64) -> Device {
    let size = BufferSize::words(words);
    Device::builder().path(cx.device()).size(size).open().expect("the device opens")
}

/// Whether this thread can be traced, so is not traced already.
fn is_free(cx: &Context) -> bool {
    match open(cx, 1).enable(TracePc) {
        Ok(_) => true,
        Err(error) if error.kind() == kcov::ErrorKind::AlreadyEnabled => false,
        Err(error) => panic!("{error}"),
    }
}

fn enable(device: &mut Device) -> Session<'_, TracePc> {
    device.enable(TracePc).expect("enabled")
}

fn kind<T>(result: Result<T, Error>) -> kcov::ErrorKind {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.kind(),
    }
}
