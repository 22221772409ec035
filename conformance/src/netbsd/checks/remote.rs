//! Remote coverage: attaching devices to sources.

pub(super) mod attach;
pub(super) mod kept;
pub(super) mod release;
pub(super) mod section;

use super::*;

/// A port that the first controller has.
const PORT: Source = Source { subsystem: 0, id: 1 };

/// Another port of the controller, where no device appears while a check uses it.
const ELSEWHERE: Source = Source { subsystem: 0, id: 3 };

/// A source that no kernel has.
const NONE: Source = Source { subsystem: u64::MAX, id: u64::MAX };

fn attached(cx: &Context) -> Device {
    attached_to(cx, PORT)
}

fn attached_to(cx: &Context, source: Source) -> Device {
    let device = open(cx);
    device.attach(source).expect("attached");
    device
}

fn source_map(device: &Device) -> Map {
    device.map(GREATEST).expect("the buffer of the source")
}

pub(crate) const CHECKS: &[Check] = &[
    on_device("remote.needs-no-size", attached, |_, device| {
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        assert_eq!(device.disable(), Ok(()));
    }),
    on_device("remote.each-mode-in-turn", attached, |_, device| {
        for mode in [KCOV_MODE_NONE, KCOV_TRACE_PC, KCOV_TRACE_CMP] {
            assert_eq!(device.enable(mode), Ok(()), "mode {mode}");
            assert_eq!(device.disable(), Ok(()), "mode {mode}");
        }
    }),
    on_device("remote.unknown-mode-is-refused", attached, |cx, device| {
        cx.refused_by(&device, |device| device.enable(3));
        cx.refused_by(&device, |device| device.enable(u32::MAX));
        device.enable(KCOV_TRACE_PC).expect("it is as it was");
    }),
    check("remote.enabled-remotely-is-refused", |cx| {
        let (device, other) = (attached(cx), attached(cx));
        device.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        cx.refused_by(&other, |other| other.enable(KCOV_TRACE_PC));
        cx.refused_by(&other, |other| other.enable(KCOV_MODE_NONE));
    }),
    on_device("remote.enabled-by-other-process-is-refused", attached, |cx, device| {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused(child(|| attached(cx).enable(KCOV_TRACE_PC)));
    }),
    on_device("remote.not-enabled-disable-is-refused", attached, |cx, device| {
        cx.refused_by(&device, Device::disable);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.disable().expect("disabled");
        cx.refused_by(&device, Device::disable);
    }),
    on_device("remote.own-thread-is-not-traced", attached, |_, device| {
        let map = source_map(&device);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        map.reset();
        (0..1000).for_each(|_| call());
        assert_eq!(map.count(), 0);
    }),
    on_device("remote.beside-local", attached, |cx, remote| {
        let (local, map) = mapped(cx);
        remote.enable(KCOV_TRACE_PC).expect("remotely");
        assert_eq!(local.enable(KCOV_TRACE_PC), Ok(()), "the thread is not bound");
        assert!(is_traced(&map));
        assert_eq!(local.disable(), Ok(()));
        assert_eq!(remote.disable(), Ok(()));
        local.enable(KCOV_TRACE_PC).expect("locally first");
        assert_eq!(remote.enable(KCOV_TRACE_PC), Ok(()));
        assert_eq!(remote.disable(), Ok(()));
        assert_eq!(remote.detach(), Ok(()));
        assert!(is_traced(&map), "the thread is still traced");
    }),
    on_device("remote.buffer-is-the-greatest", attached, |_, device| {
        let map = source_map(&device);
        let last = map.words() - 1;
        map.store(last, 3);
        assert_eq!(source_map(&device).load(last), 3);
        map.store(last, 0);
        assert!(device.map(GREATEST + 1).is_err());
    }),
    check("remote.buffer-is-of-the-source", |cx| {
        let (device, other) = (attached(cx), sized(cx, COVER_SIZE));
        let own = other.map(COVER_SIZE).expect("its own buffer");
        other.attach(PORT).expect("attached");
        let map = source_map(&device);
        map.store(9, 4);
        for words in [COVER_SIZE, GREATEST] {
            assert_eq!(other.map(words).expect("the source's buffer").load(9), 4, "{words} words");
        }
        assert_eq!(own.load(9), 0);
        map.store(9, 0);
    }),
];
