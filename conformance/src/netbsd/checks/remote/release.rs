//! A source has no owner: what ends collection from it, and what does not.

use super::*;

/// Returns a device that collects from the source.
fn enabled(cx: &Context) -> Device {
    let device = attached(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device
}

/// Asserts that an attached device that leaves, the one that enabled the source or another, disables
/// it, in each mode, and with or without a buffer of the device's own. `leave` returns the device if
/// it is still open.
#[track_caller]
fn leaving_disables(cx: &Context, by_enabler: bool, leave: fn(Device) -> Option<Device>) {
    for &mode in MODES {
        for own in [false, true] {
            let attached = || {
                let device = if own { sized(cx, COVER_SIZE) } else { open(cx) };
                device.attach(PORT).expect("attached");
                device
            };
            let (device, other) = (attached(), attached());
            device.enable(mode).expect("enabled");
            let (leaving, stays) = if by_enabler { (device, other) } else { (other, device) };
            let _left = leave(leaving);
            cx.refused_by(&stays, Device::disable);
        }
    }
}

fn detached(device: Device) -> Option<Device> {
    assert_eq!(device.detach(), Ok(()));
    Some(device)
}

fn closed(device: Device) -> Option<Device> {
    assert_eq!(device.close(), Ok(()));
    None
}

pub(crate) const CHECKS: &[Check] = &[
    check("remote.release.any-attached-may-disable", |cx| {
        let (other, device) = (attached(cx), enabled(cx));
        assert_eq!(other.disable(), Ok(()));
        cx.refused_by(&device, Device::disable);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert_eq!(thread(|| device.disable()), Ok(()), "another thread");
        cx.refused_by(&device, Device::disable);
    }),
    on_device("remote.release.other-process-may-disable", enabled, |cx, device| {
        assert_eq!(child(|| device.disable()), Ok(()));
        cx.refused_by(&device, Device::disable);
    }),
    check("remote.release.detach-disables", |cx| leaving_disables(cx, true, detached)),
    check("remote.release.detach-of-other-disables", |cx| leaving_disables(cx, false, detached)),
    check("remote.release.close-disables", |cx| leaving_disables(cx, true, closed)),
    check("remote.release.close-of-other-disables", |cx| leaving_disables(cx, false, closed)),
    on_device("remote.release.process-exit-of-other-disables", enabled, |cx, device| {
        child(|| std::mem::forget(attached(cx)));
        cx.refused_by(&device, Device::disable);
    }),
    on_device("remote.release.thread-exit-keeps-it-enabled", attached, |_, device| {
        thread(|| device.enable(KCOV_TRACE_PC)).expect("enabled");
        assert_eq!(device.disable(), Ok(()), "it was still enabled");
    }),
    check("remote.release.leaving-for-another-source-keeps-it-enabled", |cx| {
        let device = enabled(cx);
        device.attach(ELSEWHERE).expect("attached");
        cx.refused_by(&device, Device::disable);
        assert_eq!(attached(cx).disable(), Ok(()), "it was still enabled");
    }),
    check("remote.release.end-of-another-attachment-keeps-it-enabled", |cx| {
        let device = enabled(cx);
        let left = attached_to(cx, ELSEWHERE);
        left.enable(KCOV_TRACE_PC).expect("enabled");
        left.attach(PORT).expect("attached");
        left.attach(ELSEWHERE).expect("attached");
        left.detach().expect("detached");
        left.close().expect("closed");
        attached_to(cx, ELSEWHERE).close().expect("closed");
        assert_eq!(device.disable(), Ok(()), "it was still enabled");
    }),
    on_device("remote.release.close-of-a-duplicate-keeps-it-enabled", enabled, |_, device| {
        device.duplicate().expect("a duplicate").close().expect("closed");
        child(|| ());
        assert_eq!(device.disable(), Ok(()), "it was still enabled");
    }),
];
