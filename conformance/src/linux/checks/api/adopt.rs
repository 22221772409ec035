//! Adoption on Linux, which maps whole buffers only.

use crate::check::{Context, checks};
use crate::checks::api::open;
use crate::checks::shared::index;
use crate::raw::page_words;
use kcov::{Device, Operation};
use std::os::fd::OwnedFd;

checks! {
    "api.adopt.smaller-size-is-refused": smaller_size_is_refused,
}

fn smaller_size_is_refused(cx: &Context) {
    let given = OwnedFd::from(open(cx, 2 * page_words()));
    // SAFETY: Linux only maps a whole buffer, so it refuses this size.
    let refused = unsafe { Device::adopt(given, index(page_words())) };
    assert_eq!(refused.expect_err("another size").operation(), Operation::Map);
}
