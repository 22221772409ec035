//! Recovery on Linux: truncated files, and leaks of recoveries.

use crate::check::{Context, checks};
use crate::checks::api::recover::close;
use crate::checks::api::{addresses, open, records};
use crate::checks::shared::index;
use crate::raw::page_words;
use std::fs;
use std::os::fd::AsRawFd as _;

checks! {
    "api.recover.truncated-file": truncated_file,
    "api.recover.nothing-is-left-behind": nothing_is_left_behind,
    "api.recover.smaller-size-is-not-adopted": smaller_size_is_not_adopted,
}

fn truncated_file(cx: &Context) {
    let mut device = open(cx, 4096);
    let place = addresses(&mut device);
    nix::unistd::ftruncate(&device, 0).expect("root truncates");
    // A direct access would now raise a signal. A system call returns an error instead.
    assert_eq!(crate::raw::accessible(place.start), (false, false));
    assert!(!device.is_intact());
    let mut device = device.recover().expect("opened again");
    assert!(device.is_intact());
    records(&mut device);
}

/// How many file descriptors and kcov mappings the process has.
fn left() -> (usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").expect("the descriptors");
    let maps = fs::read_to_string("/proc/self/maps").expect("the mappings");
    (descriptors.count(), maps.lines().filter(|line| line.ends_with("/kcov")).count())
}

fn nothing_is_left_behind(cx: &Context) {
    let mut device = open(cx, 4096);
    let before = left();
    for _ in 0..200 {
        close(device.as_raw_fd());
        device = device.recover().expect("opened again");
    }
    assert_eq!(left(), before, "descriptors and mappings");
    for _ in 0..200 {
        assert!(device.is_intact());
        device = device.recover().expect("intact");
    }
    assert_eq!(left(), before, "descriptors and mappings");
    records(&mut device);
    drop(device);
    assert_eq!(left(), (before.0 - 1, before.1 - 1));
}

fn smaller_size_is_not_adopted(cx: &Context) {
    let device = open(cx, 2 * page_words());
    let given = std::os::fd::OwnedFd::from(device);
    // SAFETY: Linux only maps a whole buffer, so it refuses this size.
    let refused = unsafe { kcov::Device::adopt(given, index(page_words())) };
    assert_eq!(refused.expect_err("another size").operation(), kcov::Operation::Map);
}
