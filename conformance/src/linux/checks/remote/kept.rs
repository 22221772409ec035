//! Remote enabling and disabling change neither the count nor any word after it.

use super::{common, usb};
use crate::check::{Context, checks};
use crate::checks::shared::kept::unchanged;
use crate::checks::shared::{SENTINEL, mark};
use crate::raw::{KCOV_TRACE_CMP, KCOV_TRACE_PC, Remote, page_words, thread};
use crate::system::checks::{COVER_SIZE, mapped, mapped_page, open};

checks! {
    "remote.kept.by-enabling-and-disabling": by_enabling_and_disabling,
    "remote.kept.by-enabling-and-disabling-for-comparisons":
        by_enabling_and_disabling_for_comparisons,
    "remote.kept.by-the-end-of-the-thread": by_the_end_of_the_thread,
    "remote.kept.while-enabled": while_enabled,
    "remote.kept.while-enabled-for-comparisons": while_enabled_for_comparisons,
}

fn remote(mode: u32) -> Remote {
    Remote { mode, handles: vec![usb(1)], ..Remote::common(common()) }
}

fn enabling_and_disabling(cx: &Context, mode: u32) {
    let (device, map) = mapped(cx);
    for count in [1, 5, COVER_SIZE] {
        mark(&map, SENTINEL);
        map.store(0, count);
        unchanged(&map, || device.remote_enable(&remote(mode)).expect("enabled"));
        unchanged(&map, || device.disable().expect("disabled"));
    }
}

fn by_enabling_and_disabling(cx: &Context) {
    enabling_and_disabling(cx, KCOV_TRACE_PC);
}

fn by_enabling_and_disabling_for_comparisons(cx: &Context) {
    enabling_and_disabling(cx, KCOV_TRACE_CMP);
}

fn by_the_end_of_the_thread(cx: &Context) {
    let (device, map) = mapped_page(cx);
    mark(&map, SENTINEL);
    map.store(0, 5);
    unchanged(&map, || thread(|| device.remote_enable(&remote(KCOV_TRACE_PC)).expect("enabled")));
}

/// Uses a device that is enabled remotely, from its own thread and from another.
fn meanwhile(cx: &Context, mode: u32) {
    let (device, map) = mapped_page(cx);
    mark(&map, SENTINEL);
    map.store(0, 5);
    device.remote_enable(&remote(mode)).expect("enabled");
    let body = || {
        let again = device.map(page_words()).expect("mapped");
        device.duplicate().expect("a duplicate").close().expect("closed");
        again.unmap().expect("unmapped");
        open(cx).close().expect("closed");
    };
    unchanged(&map, body);
    unchanged(&map, || thread(body));
}

fn while_enabled(cx: &Context) {
    meanwhile(cx, KCOV_TRACE_PC);
}

fn while_enabled_for_comparisons(cx: &Context) {
    meanwhile(cx, KCOV_TRACE_CMP);
}
