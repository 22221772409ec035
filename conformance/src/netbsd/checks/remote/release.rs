//! A source has no owner: what ends collection from it, and what does not.

use super::{ELSEWHERE, PORT, attached, attached_to};
use crate::check::{Context, checks};
use crate::raw::{Device, KCOV_TRACE_PC, child, thread};
use crate::system::checks::{COVER_SIZE, MODES, open, sized};

checks! {
    "remote.release.any-attached-may-disable": any_attached_may_disable,
    "remote.release.other-process-may-disable": other_process_may_disable,
    "remote.release.detach-disables": detach_disables,
    "remote.release.detach-of-other-disables": detach_of_other_disables,
    "remote.release.close-disables": close_disables,
    "remote.release.close-of-other-disables": close_of_other_disables,
    "remote.release.process-exit-of-other-disables": process_exit_of_other_disables,
    "remote.release.thread-exit-keeps-it-enabled": thread_exit_keeps_it_enabled,
    "remote.release.leaving-for-another-source-keeps-it-enabled":
        leaving_for_another_source_keeps_it_enabled,
    "remote.release.end-of-another-attachment-keeps-it-enabled":
        end_of_another_attachment_keeps_it_enabled,
    "remote.release.close-of-a-duplicate-keeps-it-enabled": close_of_a_duplicate_keeps_it_enabled,
}

/// Returns a device that collects from the source.
fn enabled(cx: &Context) -> Device {
    let device = attached(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device
}

fn any_attached_may_disable(cx: &Context) {
    let (other, device) = (attached(cx), enabled(cx));
    assert_eq!(other.disable(), Ok(()));
    cx.refused_by(&device, Device::disable);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert_eq!(thread(|| device.disable()), Ok(()), "another thread");
    cx.refused_by(&device, Device::disable);
}

fn other_process_may_disable(cx: &Context) {
    let device = enabled(cx);
    assert_eq!(child(|| device.disable()), Ok(()));
    cx.refused_by(&device, Device::disable);
}

/// Who leaves a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// The device that enabled it.
    Enabler,
    /// Another attached device.
    Other,
}

/// Asserts that an attached device that leaves disables the source, in each mode, and with or
/// without a buffer of the device's own. `leave` returns the device if it is still open.
#[track_caller]
fn leaving_disables(cx: &Context, leaves: Leaves, leave: fn(Device) -> Option<Device>) {
    for &mode in MODES {
        for own in [false, true] {
            let attached = || {
                let device = if own { sized(cx, COVER_SIZE) } else { open(cx) };
                device.attach(PORT).expect("attached");
                device
            };
            let (device, other) = (attached(), attached());
            device.enable(mode).expect("enabled");
            let (leaving, stays) = match leaves {
                Leaves::Enabler => (device, other),
                Leaves::Other => (other, device),
            };
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

fn detach_disables(cx: &Context) {
    leaving_disables(cx, Leaves::Enabler, detached);
}

fn detach_of_other_disables(cx: &Context) {
    leaving_disables(cx, Leaves::Other, detached);
}

fn close_disables(cx: &Context) {
    leaving_disables(cx, Leaves::Enabler, closed);
}

fn close_of_other_disables(cx: &Context) {
    leaving_disables(cx, Leaves::Other, closed);
}

fn process_exit_of_other_disables(cx: &Context) {
    let device = enabled(cx);
    child(|| std::mem::forget(attached(cx)));
    cx.refused_by(&device, Device::disable);
}

fn thread_exit_keeps_it_enabled(cx: &Context) {
    let device = attached(cx);
    thread(|| device.enable(KCOV_TRACE_PC)).expect("enabled");
    assert_eq!(device.disable(), Ok(()), "it was still enabled");
}

fn leaving_for_another_source_keeps_it_enabled(cx: &Context) {
    let device = enabled(cx);
    device.attach(ELSEWHERE).expect("attached");
    cx.refused_by(&device, Device::disable);
    assert_eq!(attached(cx).disable(), Ok(()), "it was still enabled");
}

fn end_of_another_attachment_keeps_it_enabled(cx: &Context) {
    let device = enabled(cx);
    let left = attached_to(cx, ELSEWHERE);
    left.enable(KCOV_TRACE_PC).expect("enabled");
    left.attach(PORT).expect("attached");
    left.attach(ELSEWHERE).expect("attached");
    left.detach().expect("detached");
    left.close().expect("closed");
    attached_to(cx, ELSEWHERE).close().expect("closed");
    assert_eq!(device.disable(), Ok(()), "it was still enabled");
}

fn close_of_a_duplicate_keeps_it_enabled(cx: &Context) {
    let device = enabled(cx);
    device.duplicate().expect("a duplicate").close().expect("closed");
    child(|| ());
    assert_eq!(device.disable(), Ok(()), "it was still enabled");
}
