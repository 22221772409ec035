//! Sections that end late. A vhost worker stays in one until it gets a page that it reads.

use super::*;
use crate::errno;
use kcov_sys::ioc::Encoding;

fn enable(device: &Device) {
    device.remote_enable(&Remote::common(common())).expect("enabled");
}

/// Returns an enabled device, and a worker whose first sections have ended.
fn enabled(cx: &Context) -> (Device, Map, Vring) {
    let (device, map) = mapped(cx);
    enable(&device);
    let vring = vring();
    vring.work();
    assert!(settled(&map) > 0, "the worker's sections are collected");
    map.reset();
    (device, map, vring)
}

/// Whether the records include a section that the worker began because of a kick. The flush that
/// waits for it is another section.
pub(in crate::linux::checks) fn has_kick(map: &Map) -> bool {
    symbols().any_in("handle_tx_kick", &map.copy(1, index(map.count())))
}

/// Panics unless the section adds nothing when it ends, and the next one adds something.
#[track_caller]
fn is_discarded(map: &Map, vring: &Vring) {
    map.reset();
    vring.end();
    assert!(!has_kick(map), "of the section that was running then");
    vring.work();
    assert!(has_kick(map), "of a section that began afterwards");
}

pub(crate) const CHECKS: &[Check] = &[
    check("remote.late.counts-when-it-ends", |cx| {
        let (_device, map, vring) = enabled(cx);
        for _ in 0..3 {
            let before = settled(&map);
            vring.begin();
            assert_eq!(map.count(), before, "it has not ended");
            vring.end();
            assert!(map.count() > before, "it has ended");
        }
    }),
    check("remote.late.disabled-meanwhile-is-discarded", |cx| {
        let (device, map, vring) = enabled(cx);
        vring.begin();
        device.disable().expect("disabled");
        vring.end();
        assert_eq!(map.count(), 0);
        enable(&device);
        vring.work();
        assert!(map.count() > 0, "of a section that began afterwards");
    }),
    check("remote.late.enabled-again-is-discarded", |cx| {
        let (device, map, vring) = enabled(cx);
        for times in 1..4 {
            vring.begin();
            for _ in 0..times {
                device.disable().expect("disabled");
                enable(&device);
            }
            is_discarded(&map, &vring);
        }
    }),
    check("remote.late.enabled-locally-is-discarded", |cx| {
        let (device, map, vring) = enabled(cx);
        vring.begin();
        device.disable().expect("disabled");
        device.enable(KCOV_TRACE_PC).expect("enabled locally");
        vring.end();
        device.disable().expect("it is the thread's device still");
        assert!(map.count() > 0, "the thread's own");
        assert!(!has_kick(&map), "none of the worker");
    }),
    check("remote.late.enabled-by-other-thread-is-discarded", |cx| {
        let (device, map, vring) = enabled(cx);
        vring.begin();
        device.disable().expect("disabled");
        thread(|| {
            enable(&device);
            is_discarded(&map, &vring);
        });
    }),
    on_buffer("remote.late.ended-owner-is-discarded", mapped, |_, device, map| {
        let vring = thread(|| {
            enable(&device);
            let vring = vring();
            vring.begin();
            vring
        });
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "the device is free");
        device.disable().expect("disabled");
        enable(&device);
        is_discarded(&map, &vring);
    }),
    on_buffer("remote.late.killed-owner-frees-the-device", mapped, |_, device, map| {
        let last = map.words() - 1;
        let owner: Child<()> = Child::endless(|| {
            enable(&device);
            let vring = vring();
            vring.begin();
            map.store(last, 1);
        });
        assert!(wait_for(LONG, || map.load(last) == 1), "the child's worker is in a section");
        let handle = u64::try_from(owner.pid.as_raw()).expect("a process");
        owner.kill();
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "the device is free");
        assert!(is_traced(&map), "it records");
        device.disable().expect("disabled");
        let both = Remote { common: handle, ..Remote::of(usb(1)) };
        assert_eq!(device.remote_enable(&both), Ok(()), "the handle is free");
    }),
    on_buffer("remote.late.area-keeps-its-size", mapped, |_, device, _map| {
        // No other check uses these sizes.
        let of = |area| Remote { area, ..Remote::common(common()) };
        let (small, great) = (of(7 * 4096 + 512), of(9 * 4096 + 512));
        let areas = || areas_of("kcov_remote_start");
        let before = areas();
        device.remote_enable(&small).expect("enabled");
        let vring = vring();
        vring.work();
        assert_eq!(areas(), before + 1, "its sections use one area");
        vring.begin();
        device.disable().expect("disabled");
        device.remote_enable(&great).expect("enabled again");
        vring.end();
        vring.work();
        assert_eq!(areas(), before + 2, "one of the other size");
        device.disable().expect("disabled");
        device.remote_enable(&small).expect("enabled again");
        vring.work();
        assert_eq!(areas(), before + 2, "the first one again");
    }),
    check("remote.late.keeps-the-buffer", |cx| {
        // No other check uses this size.
        const PAGES: u64 = 77;
        let buffers = || areas_of_size("kcov_ioctl", PAGES * page_size() as u64);
        assert_eq!(buffers(), 0);
        let (vring, ours) = thread(|| {
            let device = sized(cx, PAGES * page_words());
            // A proposal has several.
            let ours = buffers();
            enable(&device);
            let vring = vring();
            vring.begin();
            (vring, ours)
        });
        assert!(ours > 0, "a buffer of this size");
        // The device's file descriptor is closed, and its enabling thread has ended.
        assert_eq!(buffers(), ours, "the section keeps it");
        vring.end();
        assert!(wait_for(LONG, || buffers() == 0), "nobody keeps it any more");
    }),
    check("remote.late.others-end-meanwhile", |cx| {
        let (_device, map, held) = enabled(cx);
        let other = vring();
        other.work();
        held.begin();
        for _ in 0..3 {
            let count = map.count();
            other.work();
            assert!(map.count() > count, "the other worker's sections are collected");
        }
        let count = map.count();
        let early = map.copy(1, index(count));
        held.end();
        assert!(map.count() > count, "it counts when it ends");
        assert_eq!(map.copy(1, early.len()), early, "behind those of the other");
    }),
    check("remote.late.refused-requests-leave-the-section", |cx| {
        let (device, map, vring) = enabled(cx);
        let unknown_mode = Remote { mode: 77, ..Remote::common(common()) };
        let unknown_request = Encoding::LINUX_NATIVE.io(b'c', 77);
        let requests: &[&(dyn Fn() -> errno::Result<()> + Sync)] = &[
            &|| device.init_trace(page_words()),
            &|| device.enable(KCOV_TRACE_PC),
            &|| device.enable(KCOV_TRACE_CMP),
            &|| device.remote_enable(&Remote::common(common())),
            &|| device.remote_enable(&unknown_mode),
            &|| device.disable_with(1),
            &|| device.request(unknown_request, 0),
        ];
        for request in requests {
            vring.begin();
            assert!(request().is_err(), "by the owner");
            let by_other = thread(request);
            assert!(by_other.is_err(), "by another thread");
            map.reset();
            vring.end();
            assert!(has_kick(&map), "of the section that was running then");
        }
    }),
];
