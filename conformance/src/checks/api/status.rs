//! Probing.

use super::{enable, is_free, open};
use crate::check::{Context, checks};
use crate::raw::call;
use kcov::Status;
use kcov::mode::{TraceCmp, TracePc};
use std::os::fd::AsRawFd as _;

checks! {
    available_with_comparisons needs(Comparisons),
    probing_leaves_nothing_behind,
    probing_while_traced,
    nothing_built_in,
}

fn available_with_comparisons(cx: &Context) {
    let Status::Available(modes) = Status::probe_path(cx.device()) else {
        panic!("{}", Status::probe_path(cx.device()));
    };
    assert!(modes.contains(TracePc) && modes.contains(TraceCmp));
}

fn probing_leaves_nothing_behind(cx: &Context) {
    // The lowest number that is free: it moves if anything stays open.
    let next = || std::fs::File::open("/dev/null").expect("a file").as_raw_fd();
    let before = next();
    for _ in 0..10 {
        assert!(matches!(Status::probe_path(cx.device()), Status::Available(_)));
    }
    assert!(is_free(cx));
    assert_eq!(next(), before);
}

fn probing_while_traced(cx: &Context) {
    let mut device = open(cx, 1 << 16);
    let mut session = enable(&mut device);
    assert!(matches!(Status::probe_path(cx.device()), Status::Available(_)));
    session.reset();
    call();
    assert!(!session.disable().expect("still enabled").is_empty());
}

fn nothing_built_in(cx: &Context) {
    let missing = cx.device().with_file_name("kcov-is-not-here");
    assert_eq!(Status::probe_path(missing), Status::NotBuiltIn);
}
