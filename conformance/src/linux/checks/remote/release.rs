//! When handles become free again, and what refusals, enabling and disabling leave as it was.

use super::*;

fn both() -> Remote {
    Remote { common: common(), ..Remote::of_all([usb(1), usb(2)]) }
}

fn enabled(cx: &Context) -> Device {
    enabled_for(cx, &both())
}

fn are_free(cx: &Context) -> bool {
    is_free(cx, &both())
}

/// A request that is refused because of its last handle.
fn refused() -> Remote {
    Remote { common: 1 << 32, ..both() }
}

fn remote(mode: u32) -> Remote {
    Remote { mode, common: common(), ..Remote::of(usb(1)) }
}

fn enabling_and_disabling(cx: &Context, mode: u32) {
    let (device, map) = mapped(cx);
    for count in [1, 5, COVER_SIZE] {
        mark_from(&map, count);
        unchanged(&map, || device.remote_enable(&remote(mode)).expect("enabled"));
        unchanged(&map, || device.disable().expect("disabled"));
    }
}

/// Uses a device that is enabled remotely, from its own thread and from another.
fn meanwhile(cx: &Context, mode: u32) {
    let (device, map) = mapped_page(cx);
    mark_from(&map, 5);
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

pub(crate) const CHECKS: &[Check] = &[
    on_device("remote.release.disable-ends-collection", enabled, |_, device| {
        assert_eq!(device.disable(), Ok(()));
        assert!(device.disable().is_err(), "it has been disabled");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "it can be enabled in the other way");
    }),
    on_device("remote.release.disable-frees-handles", enabled, |cx, device| {
        assert!(!are_free(cx));
        device.disable().expect("disabled");
        assert!(are_free(cx));
        assert_eq!(device.remote_enable(&both()), Ok(()));
    }),
    on_device("remote.release.disable-by-other-thread-is-refused", enabled, |cx, device| {
        cx.refused_by(&device, |device| thread(|| device.disable()));
        assert!(!are_free(cx));
    }),
    check("remote.release.thread-exit-frees-handles", |cx| {
        let device = thread(|| enabled(cx));
        assert!(are_free(cx));
        assert_eq!(device.remote_enable(&both()), Ok(()), "the device is free too");
    }),
    check("remote.release.thread-exit-frees-both-devices", |cx| {
        let (local, remote) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        for round in 0..2 {
            let enabled = thread(|| [local.enable(KCOV_TRACE_PC), remote.remote_enable(&both())]);
            assert_eq!(enabled, [Ok(()); 2], "round {round}");
        }
        assert!(are_free(cx));
    }),
    on_device("remote.release.process-exit-frees-handles", usual, |_, device| {
        assert_eq!(child(|| device.remote_enable(&both())), Ok(()));
        assert_eq!(device.remote_enable(&both()), Ok(()));
    }),
    check("remote.release.close-keeps-handles", |cx| {
        enabled(cx).close().expect("closed");
        cx.refused(thread(|| sized(cx, COVER_SIZE).remote_enable(&both())));
    }),
    on_device("remote.release.refusal-frees-handles", usual, |cx, device| {
        assert!(device.remote_enable(&refused()).is_err());
        assert!(are_free(cx));
    }),
    on_buffer("remote.release.refusal-leaves-device-usable", mapped, |_, device, map| {
        assert!(device.remote_enable(&refused()).is_err());
        assert_eq!(device.remote_enable(&both()), Ok(()), "the same, corrected");
        device.disable().expect("disabled");
        assert!(device.remote_enable(&refused()).is_err());
        traces(&device, &map);
    }),
    check("remote.release.refusal-leaves-thread-free", |cx| {
        let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        assert!(first.remote_enable(&refused()).is_err());
        assert!(first.disable().is_err(), "there is nothing to disable");
        assert_eq!(second.remote_enable(&both()), Ok(()));
    }),
    on_device("remote.release.disable-by-forked-child-is-refused", enabled, |cx, device| {
        cx.refused_by(&device, |device| child(|| device.disable()));
        assert!(!are_free(cx));
    }),
    on_device("remote.release.memory-is-freed", usual, |cx, device| {
        // Each round has 64 handles, and a structure of half a KiB that contains them.
        const TIMES: usize = 3000;
        let (all, twice) = (Remote::of_all((0..64).map(usb)), Remote::of_all([usb(1), usb(1)]));
        let enabled = kernel_memory_lost(TIMES, 400, || {
            device.remote_enable(&all).expect("enabled");
            device.disable().expect("disabled");
        });
        assert!(enabled < 400, "{enabled} KiB more after enabling");
        // A refused request allocates its first handle and the structure.
        let refused = kernel_memory_lost(TIMES, 100, || {
            assert!(device.remote_enable(&twice).is_err(), "a handle twice");
        });
        assert!(refused < 100, "{refused} KiB more after refusals");
        // The thread is busy, so only the structure is allocated.
        device.remote_enable(&Remote::default()).expect("enabled");
        let second = sized(cx, COVER_SIZE);
        let busy = kernel_memory_lost(TIMES, 400, || {
            assert!(second.remote_enable(&all).is_err(), "the thread is busy");
        });
        assert!(busy < 400, "{busy} KiB more after refusals to a busy thread");
    }),
    check("remote.release.buffer-of-an-ended-thread-is-freed", |cx| {
        let before = areas_of("kcov_ioctl");
        for _ in 0..10 {
            thread(|| drop(enabled(cx)));
        }
        // There are fewer if an earlier one was freed late.
        assert!(areas_of("kcov_ioctl") <= before);
    }),
    check("remote.kept.by-enabling-and-disabling", |cx| enabling_and_disabling(cx, KCOV_TRACE_PC)),
    check("remote.kept.by-enabling-and-disabling-for-comparisons", |cx| {
        enabling_and_disabling(cx, KCOV_TRACE_CMP);
    }),
    on_buffer("remote.kept.by-the-end-of-the-thread", mapped_page, |_, device, map| {
        mark_from(&map, 5);
        unchanged(&map, || {
            thread(|| device.remote_enable(&remote(KCOV_TRACE_PC)).expect("enabled"));
        });
    }),
    check("remote.kept.while-enabled", |cx| meanwhile(cx, KCOV_TRACE_PC)),
    check("remote.kept.while-enabled-for-comparisons", |cx| meanwhile(cx, KCOV_TRACE_CMP)),
];
