//! `KCOV_IOC_REMOTE_ATTACH` and `KCOV_IOC_REMOTE_DETACH`.

use super::*;
use kcov_sys::netbsd::KCOV_IOC_REMOTE_ATTACH;

pub(crate) const CHECKS: &[Check] = &[
    on_device("remote.attach.unknown-source-is-refused", open, |cx, device| {
        cx.refused_by(&device, |device| device.attach(NONE));
        cx.refused_by(&device, |device| device.attach(Source { subsystem: 0, id: u64::MAX }));
        cx.refused_by(&device, |device| device.attach(Source::vhci(0, 99)));
        // Truncated to 32 bits, the second is a subsystem that the kernel has.
        for subsystem in [1, 1 << 32] {
            cx.refused_by(&device, |device| device.attach(Source { subsystem, id: 1 }));
        }
        device.init_trace(COVER_SIZE).expect("it is not attached");
        assert!(device.map(COVER_SIZE).is_ok());
    }),
    on_device("remote.attach.unknown-source-keeps-the-attachment", attached, |cx, device| {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused(device.attach(NONE));
        cx.refused(device.attach(Source::vhci(99, 1)));
        assert_eq!(device.disable(), Ok(()), "it is attached, and its source enabled");
        assert_eq!(device.detach(), Ok(()));
    }),
    check("remote.attach.unreadable-argument-is-refused", |cx| {
        cx.refused_by(&open(cx), |device| device.request(KCOV_IOC_REMOTE_ATTACH, 0));
    }),
    on_device("remote.attach.while-enabled-is-refused", enabled_pc, |cx, device| {
        cx.refused_by(&device, |device| device.attach(PORT));
        device.disable().expect("it is still enabled");
    }),
    on_device("remote.attach.enabled-comes-before-source", enabled_pc, |cx, device| {
        cx.refused_by(&device, |device| device.attach(NONE));
    }),
    check("remote.attach.detach-when-not-attached-is-refused", |cx| {
        cx.refused_by(&open(cx), Device::detach);
        cx.refused_by(&sized(cx, COVER_SIZE), Device::detach);
    }),
    on_device("remote.attach.detach-while-enabled-is-refused", enabled_pc, |cx, device| {
        cx.refused_by(&device, Device::detach);
    }),
    check("remote.attach.every-port-is-a-source", |cx| {
        let ports: Vec<_> = (0..8).flat_map(|bus| (0..8).map(move |port| (bus, port))).collect();
        let map = |&(bus, port)| source_map(&attached_to(cx, Source::vhci(bus, port)));
        let maps: Vec<_> = ports.iter().map(map).collect();
        let last = maps[0].words() - 1;
        for (number, map) in maps.iter().enumerate() {
            map.store(last, number as u64);
        }
        for (number, (map, port)) in maps.iter().zip(&ports).enumerate() {
            assert_eq!(map.load(last), number as u64, "port {port:?} has its own buffer");
        }
    }),
    on_device("remote.attach.again", attached, |_, device| {
        assert_eq!(device.attach(PORT), Ok(()), "the same source");
        assert_eq!(device.attach(Source::vhci(0, 0)), Ok(()), "another one");
        assert_eq!(device.detach(), Ok(()));
        assert!(device.detach().is_err(), "it was attached once");
        assert_eq!(device.attach(PORT), Ok(()), "after it was detached");
    }),
    on_device("remote.attach.while-the-source-is-enabled", attached, |cx, device| {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert_eq!(device.attach(PORT), Ok(()));
        let other = open(cx);
        assert_eq!(other.attach(PORT), Ok(()));
        assert_eq!(other.disable(), Ok(()), "it stays enabled");
        assert_eq!(other.attach(PORT), Ok(()));
        assert!(other.disable().is_err(), "it stays disabled");
    }),
    on_device("remote.attach.by-a-traced-thread", attached, |cx, device| {
        let attach_in_another_process = || {
            child(|| {
                let (local, map) = mapped(cx);
                local.enable(KCOV_TRACE_PC).expect("traced");
                let other = open(cx);
                assert_eq!(other.attach(PORT), Ok(()));
                map.reset();
                call();
                assert!(map.count() > 0, "it is still traced");
                other.disable().is_ok()
            })
        };
        assert!(!attach_in_another_process(), "the source is disabled");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(attach_in_another_process(), "the source is enabled");
    }),
    on_device("remote.attach.size-is-ignored", attached, |_, device| {
        for entries in [0, 1, 512, u64::MAX] {
            assert_eq!(device.init_trace(entries), Ok(()), "{entries} entries");
        }
        device.detach().expect("detached");
        assert!(device.map(1).is_err(), "no buffer has come of it");
    }),
    on_buffer("remote.attach.own-buffer-comes-back", mapped, |_, device, map| {
        map.store(8, 5);
        device.attach(PORT).expect("attached");
        assert_ne!(source_map(&device).load(8), 5);
        device.detach().expect("detached");
        assert_eq!(device.map(COVER_SIZE).expect("its own buffer").load(8), 5);
        traces(&device, &map);
    }),
    on_device("remote.attach.own-buffer-can-be-sized-after-detach", attached, |_, device| {
        device.detach().expect("detached");
        assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    }),
    on_buffer("remote.attach.mappings-stay", mapped, |cx, device, own| {
        device.attach(PORT).expect("attached");
        let source = source_map(&device);
        own.store(9, 1);
        source.store(9, 2);
        assert_eq!(own.load(9), 1, "a mapping from before");
        device.attach(ELSEWHERE).expect("attached elsewhere");
        source_map(&device).store(9, 3);
        device.detach().expect("detached");
        assert_eq!((own.load(9), source.load(9)), (1, 2));
        device.close().expect("closed");
        source.store(9, 4);
        assert_eq!(source_map(&attached(cx)).load(9), 4, "the mapping outlives the device");
    }),
    check("remote.attach.is-of-one-device", |cx| {
        let (device, other) = (attached(cx), attached(cx));
        other.detach().expect("detached");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "the first one is still attached");
        assert_eq!(device.disable(), Ok(()));
        other.attach(PORT).expect("attached");
        other.close().expect("closed");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "the first one is still attached");
        assert_eq!(device.detach(), Ok(()));
    }),
    on_device("remote.attach.elsewhere-moves-the-device", attached, |cx, device| {
        let own = source_map(&device);
        own.store(9, 1);
        device.attach(ELSEWHERE).expect("attached elsewhere");
        let map = source_map(&device);
        map.store(9, 2);
        assert_eq!(own.load(9), 1, "another buffer");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(attached(cx).disable().is_err(), "the earlier source is not enabled");
        assert_eq!(attached_to(cx, ELSEWHERE).disable(), Ok(()));
    }),
];
