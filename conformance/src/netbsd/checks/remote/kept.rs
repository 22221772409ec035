//! Operations that change no word of a source's buffer, including the count, and none of a device's
//! own buffer.

use super::*;
use crate::checks::shared::kept::unchanged;

/// Returns an attached device and the source's buffer: marked, with a small count.
fn marked(cx: &Context) -> (Device, Map) {
    let device = attached(cx);
    let map = source_map(&device);
    mark_from(&map, 5);
    (device, map)
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("remote.kept.by-attaching", marked, |cx, device, map| {
        unchanged(&map, || {
            device.attach(PORT).expect("attached again");
            device.init_trace(512).expect("ignored");
            let other = attached(cx);
            source_map(&other).unmap().expect("unmapped");
            other.attach(ELSEWHERE).expect("attached elsewhere");
            other.attach(PORT).expect("attached again");
        });
    }),
    on_buffer("remote.kept.by-enabling-and-disabling", marked, |cx, device, map| {
        for &mode in MODES {
            unchanged(&map, || device.enable(mode).expect("enabled"));
            unchanged(&map, || attached(cx).attach(PORT).expect("attached again"));
            let _ = device.enable(mode);
            unchanged(&map, || device.disable().expect("disabled"));
        }
    }),
    on_buffer("remote.kept.by-refusals", marked, |cx, device, map| {
        unchanged(&map, || {
            assert!(device.disable().is_err());
            assert!(device.enable(3).is_err());
            device.enable(KCOV_TRACE_PC).expect("enabled");
            assert!(device.enable(KCOV_TRACE_CMP).is_err());
            assert!(device.map(super::GREATEST + 512).is_err());
            let other = super::open(cx);
            assert!(other.detach().is_err());
            assert!(other.attach(super::NONE).is_err());
            assert!(device.attach(super::NONE).is_err());
        });
        assert_eq!(device.disable(), Ok(()), "it is attached, and its source enabled");
    }),
    on_buffer("remote.kept.by-leaving", marked, |cx, device, map| {
        let other = attached(cx);
        unchanged(&map, || {
            other.enable(KCOV_TRACE_PC).expect("enabled");
            other.detach().expect("detached");
            other.attach(PORT).expect("attached");
            other.enable(KCOV_TRACE_PC).expect("enabled");
            other.close().expect("closed");
            child(|| {
                let device = attached(cx);
                device.enable(KCOV_TRACE_PC).expect("enabled");
                std::mem::forget(device);
            });
            device.close().expect("nobody is attached");
        });
        let words = map.copy(0, map.words());
        let again = source_map(&attached(cx));
        assert!(again.copy(0, again.words()) == words, "the next device finds the same words");
    }),
    on_buffer("remote.kept.own-buffer-by-remote-use", mapped_page, |_, device, map| {
        mark_from(&map, 5);
        unchanged(&map, || {
            device.attach(PORT).expect("attached");
            device.init_trace(1024).expect("ignored");
            for &mode in MODES {
                device.enable(mode).expect("enabled");
                super::section::section();
                device.disable().expect("disabled");
            }
            device.enable(KCOV_TRACE_PC).expect("enabled");
            device.detach().expect("detached");
        });
        assert!(device.map(513).is_err(), "its size is the earlier one");
    }),
];
