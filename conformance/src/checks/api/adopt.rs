//! Devices that someone else has opened.

use super::{descriptor, enable, intruder, kind, of_a_call, open, open_at, records};
use crate::checks::prelude::*;
use crate::raw::Device as Raw;
use kcov::{Device, Error, ErrorKind, Operation};
use nix::fcntl::{FcntlArg, fcntl};
use std::os::fd::{AsFd, AsRawFd as _, IntoRawFd as _, OwnedFd};

/// Adopts a second file descriptor of the same open file.
fn adopt(fd: &impl AsFd, words: usize) -> Result<Device, Error> {
    let fd = fd.as_fd().try_clone_to_owned().expect("a second descriptor");
    // SAFETY: callers pass file descriptors of kcov devices. If the size is wrong, it is too large,
    // which every system refuses, or too small, which Linux refuses.
    unsafe { Device::adopt(fd, words) }
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.adopt.inherited-by-a-child", |cx| {
        let device = open(cx, 4096);
        let map = intruder(&device);
        let seen: Vec<u64> = child(|| {
            let mut device = adopt(&device, device.words()).expect("adopted");
            of_a_call(enable(&mut device)).trace().iter().map(kcov::Pc::address).collect()
        });
        assert!(!seen.is_empty());
        assert_eq!((map.count(), map.copy(1, seen.len())), (seen.len() as u64, seen));
    }),
    check("api.adopt.passed-over-a-socket", |cx| {
        let device = open(cx, 4096);
        let words = device.words();
        let passed = pass_descriptor(&Raw::from(OwnedFd::from(device)));
        let mut device = adopt(&passed, words).expect("adopted");
        assert_eq!(device.words(), words);
        records(&mut device);
    }),
    check("api.adopt.duplicated", |cx| {
        let device = open(cx, 4096);
        let map = intruder(&device);
        let stays_open = nix::unistd::dup(&device).expect("a descriptor without flags");
        let number = stays_open.as_raw_fd();
        // SAFETY: it is a kcov device of this size.
        let mut second = unsafe { Device::adopt(stays_open, device.words()) }.expect("adopted");
        assert_eq!(descriptor(&second), number);
        assert_eq!(fcntl(&second, FcntlArg::F_GETFD), Ok(0), "not close-on-exec, as it was");
        let seen = of_a_call(enable(&mut second)).trace().len();
        assert_eq!(map.count(), seen as u64, "both have one buffer");
        drop(second);
        assert!(fcntl(&device, FcntlArg::F_GETFD).is_ok(), "the first is still there");
    }),
    check("api.adopt.other-size-is-refused", |cx| {
        let device = open(cx, 4096);
        let not_sized = Raw::open(cx.device()).expect("the device opens");
        for refused in [adopt(&device, 2 * device.words()), adopt(&not_sized, device.words())] {
            assert_eq!(refused.expect_err("another size").operation(), Operation::Map);
        }
        assert_eq!(kind(adopt(&device, 0)), ErrorKind::Other);
        assert_eq!(kind(adopt(&device, usize::MAX)), ErrorKind::Other);
    }),
    check("api.adopt.enabled-by-somebody-else", |cx| {
        let mut device = open(cx, 4096);
        let second = device.as_fd().try_clone_to_owned().expect("a second descriptor");
        let words = device.words();
        let session = enable(&mut device);
        let mut second = adopt(&second, words).expect("adopted");
        let refused = thread(|| kind(second.enable(kcov::mode::TracePc)));
        assert_eq!(refused, ErrorKind::AlreadyEnabled);
        drop(session);
        records(&mut second);
    }),
    check("api.adopt.given-away", |cx| {
        let (device, place) = open_at(cx, 4096);
        let (number, words) = (descriptor(&device), device.words());
        assert_eq!(accessible(place.start), (true, true));
        let given = OwnedFd::from(device);
        assert_eq!(given.as_raw_fd(), number);
        assert_eq!(accessible(place.start), (false, false), "the buffer is unmapped");
        records(&mut adopt(&given, words).expect("the descriptor is open, and a device's"));

        // SAFETY: as in `adopt`.
        let device = unsafe { Device::adopt(given, words) }.expect("adopted");
        assert_eq!(OwnedFd::from(device).into_raw_fd(), number);
        // SAFETY: the number was just given away, so nothing else owns it.
        let given: OwnedFd = unsafe { std::os::fd::FromRawFd::from_raw_fd(number) };
        records(&mut adopt(&given, words).expect("still open"));
    }),
];
