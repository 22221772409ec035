//! Probing.

use super::{enable, is_free, kind, open};
use crate::check::{Context, checks};
use crate::raw::call;
use kcov::mode::{TraceCmp, TracePc};
use kcov::{ErrorKind, Modes};
use std::os::fd::AsRawFd as _;

checks! {
    "api.modes.available-with-comparisons": available_with_comparisons,
    "api.modes.probing-leaves-nothing-behind": probing_leaves_nothing_behind,
    "api.modes.probing-while-traced": probing_while_traced,
    "api.modes.nothing-built-in": nothing_built_in,
}

fn available_with_comparisons(cx: &Context) {
    let modes = Modes::probe_path(cx.device()).expect("it works");
    assert!(modes.contains(TracePc) && modes.contains(TraceCmp));
}

fn probing_leaves_nothing_behind(cx: &Context) {
    // The lowest free file descriptor, which changes if anything stays open.
    let next = || std::fs::File::open("/dev/null").expect("a file").as_raw_fd();
    let before = next();
    for _ in 0..10 {
        Modes::probe_path(cx.device()).expect("it works");
    }
    assert!(is_free(cx));
    assert_eq!(next(), before);
}

fn probing_while_traced(cx: &Context) {
    let mut device = open(cx, 1 << 16);
    let mut session = enable(&mut device);
    Modes::probe_path(cx.device()).expect("it works");
    session.reset();
    call();
    assert!(!session.disable().expect("still enabled").is_empty());
}

fn nothing_built_in(cx: &Context) {
    let missing = cx.device().with_file_name("kcov-is-not-here");
    assert_eq!(kind(Modes::probe_path(missing)), ErrorKind::NotBuiltIn);
}
