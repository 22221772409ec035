//! Asks the kernel for features. Each probe has a process to itself.

use super::{KCOV_TRACE_CMP, KCOV_TRACE_PC, Source};
use crate::declare::Feature;
use crate::errno::{Errno, Result};
use crate::raw::{Device, call, page_words};
use std::path::Path;

/// Whether the kernel has the feature.
///
/// An error other than the one that means "no" is not an answer, and passed on.
pub fn probe(feature: Feature, device: &Path) -> Result<bool> {
    let device = match Device::open(device) {
        Ok(device) => device,
        // No node, or a node without a driver.
        Err(Errno(libc::ENOENT | libc::ENXIO)) => return Ok(false),
        Err(errno) => return Err(errno),
    };
    match feature {
        Feature::Kcov => Ok(true),
        Feature::Instrumented => records(&device, KCOV_TRACE_PC),
        Feature::Comparisons => records(&device, KCOV_TRACE_CMP),
        Feature::NetBsd9 => Ok(!knows_sources(&device)?),
        Feature::NetBsd10 => knows_sources(&device),
        Feature::Vhci => match device.attach(Source::vhci(0, 1)) {
            Ok(()) => Ok(true),
            Err(Errno(libc::ENOENT | libc::EINVAL)) => Ok(false),
            Err(errno) => Err(errno),
        },
        // Those of Linux.
        _ => Ok(false),
    }
}

/// Both modes are always accepted; whether code is instrumented shows only in the buffer.
fn records(device: &Device, mode: u32) -> Result<bool> {
    device.init_trace(page_words())?;
    let map = device.map(page_words())?;
    device.enable(mode)?;
    map.reset();
    call();
    Ok(map.count() > 0)
}

/// Attaching to what cannot exist: an unknown request on NetBSD 9, an unknown source later.
fn knows_sources(device: &Device) -> Result<bool> {
    match device.attach(Source { subsystem: u64::MAX, id: u64::MAX }) {
        Err(Errno(libc::EINVAL)) => Ok(false),
        Err(Errno(libc::ENOENT)) => Ok(true),
        Err(errno) => Err(errno),
        // No kernel has it, so this one is of neither kind.
        Ok(()) => Err(Errno(libc::ENOTSUP)),
    }
}
