//! Probes the kernel for features. Each probe runs in its own process.

use super::{KCOV_TRACE_CMP, KCOV_TRACE_PC, Source};
use crate::errno::{Errno, Result};
use crate::feature::Feature;
use crate::raw::{Device, Sites, call, page_words};
use std::path::Path;

/// Whether the kernel has the feature.
///
/// Passes on any error other than those that mean "no".
pub fn probe(feature: Feature, device: &Path) -> std::result::Result<bool, String> {
    let device = match Device::open(device) {
        Ok(device) => device,
        // No device node, or no driver behind it.
        Err(Errno(libc::ENOENT | libc::ENXIO)) => return Ok(false),
        Err(errno) => return Err(errno.to_string()),
    };
    let answer = match feature {
        Feature::Kcov => Ok(true),
        Feature::CallSites => Ok(Sites::given().is_some()),
        Feature::Instrumented => records(&device, KCOV_TRACE_PC),
        Feature::Comparisons => records(&device, KCOV_TRACE_CMP),
        Feature::NetBsd9 | Feature::NetBsd10 => return Ok(interface(&device)? == feature),
        Feature::Vhci => match device.attach(Source::vhci(0, 1)) {
            Ok(()) => Ok(true),
            Err(Errno(libc::ENOENT | libc::EINVAL)) => Ok(false),
            Err(errno) => Err(errno),
        },
        // Features of Linux.
        _ => Ok(false),
    };
    answer.map_err(|errno: Errno| errno.to_string())
}

/// Whether this mode records. The driver always accepts both modes, so only the buffer can tell.
fn records(device: &Device, mode: u32) -> Result<bool> {
    device.init_trace(page_words())?;
    let map = device.map(page_words())?;
    device.enable(mode)?;
    map.reset();
    call();
    Ok(map.count() > 0)
}

/// The kernel's interface, by the errors of all requests that tell NetBSD 9 from 10.
///
/// Fails if they do not belong to one release.
fn interface(device: &Device) -> std::result::Result<Feature, String> {
    use libc::{EINVAL, ENOBUFS, ENOENT};
    let nowhere = Source { subsystem: u64::MAX, id: u64::MAX };
    let answers = [
        ("KCOV_IOC_REMOTE_ATTACH to no source", device.attach(nowhere), [EINVAL, ENOENT]),
        ("KCOV_IOC_REMOTE_DETACH of no attachment", device.detach(), [EINVAL, ENOENT]),
        ("KCOV_IOC_ENABLE of no mode, without a size", device.enable(99), [ENOBUFS, EINVAL]),
    ];
    let is_of = |release: usize| {
        answers.iter().all(|(_, answer, errnos)| *answer == Err(Errno(errnos[release])))
    };
    if is_of(0) {
        return Ok(Feature::NetBsd9);
    }
    if is_of(1) {
        return Ok(Feature::NetBsd10);
    }
    let told = answers.map(|(request, answer, [nine, ten])| {
        let answer = answer.map_or_else(|errno| errno.to_string(), |()| "success".into());
        let [nine, ten] = [nine, ten].map(Errno);
        format!("{request}: {answer} (NetBSD 9: {nine}, NetBSD 10: {ten})")
    });
    Err(format!("the requests contradict each other: {}", told.join("; ")))
}
