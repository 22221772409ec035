//! Size limits.

use crate::check::{Context, checks};
use crate::checks::api::{enable, open};
use crate::raw::call;
use kcov::BufferSize;
use kcov::mode::{TraceCmp, TracePc};

checks! {
    "api.device.limits-are-the-drivers": limits_are_the_drivers,
    "api.device.default-size-is-the-greatest": default_size_is_the_greatest,
}

fn limits_are_the_drivers(_: &Context) {
    assert_eq!(BufferSize::limits(), crate::raw::page_words()..=256 << 10);
}

fn default_size_is_the_greatest(cx: &Context) {
    let greatest = *BufferSize::limits().end();
    let mut device = open(cx, greatest);
    assert_eq!(device.words() as u64, greatest);
    assert_eq!(device.capacity(TracePc), (256 << 10) - 1);
    assert_eq!(device.capacity(TraceCmp), ((256 << 10) - 1) / 4);
    let session = enable(&mut device);
    call();
    assert!(!session.trace().is_empty());
}
