//! Probes the kernel for features. Each probe runs in its own process.

use super::{KCOV_TRACE_CMP, KCOV_TRACE_PC, Source};
use crate::errno::{Errno, Result};
use crate::feature::Feature;
use crate::raw::{Device, Sites, call, page_words};
use std::path::Path;

/// Whether the kernel has the feature.
///
/// Passes on any error other than those that mean "no".
pub fn probe(feature: Feature, device: &Path) -> Result<bool> {
    let device = match Device::open(device) {
        Ok(device) => device,
        // No device node, or no driver behind it.
        Err(Errno(libc::ENOENT | libc::ENXIO)) => return Ok(false),
        Err(errno) => return Err(errno),
    };
    match feature {
        Feature::Kcov => Ok(true),
        Feature::CallSites => Ok(Sites::given().is_some()),
        Feature::Instrumented => records(&device, KCOV_TRACE_PC),
        Feature::Comparisons => records(&device, KCOV_TRACE_CMP),
        Feature::NetBsd9 => Ok(!knows_sources(&device)?),
        Feature::NetBsd10 => knows_sources(&device),
        Feature::Vhci => match device.attach(Source::vhci(0, 1)) {
            Ok(()) => Ok(true),
            Err(Errno(libc::ENOENT | libc::EINVAL)) => Ok(false),
            Err(errno) => Err(errno),
        },
        // Features of Linux.
        _ => Ok(false),
    }
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

/// Attaches to an impossible source. NetBSD 9 lacks the request, later releases the source.
fn knows_sources(device: &Device) -> Result<bool> {
    match device.attach(Source { subsystem: u64::MAX, id: u64::MAX }) {
        Err(Errno(libc::EINVAL)) => Ok(false),
        Err(Errno(libc::ENOENT)) => Ok(true),
        Err(errno) => Err(errno),
        // No known kernel accepts it.
        Ok(()) => Err(Errno(libc::ENOTSUP)),
    }
}
