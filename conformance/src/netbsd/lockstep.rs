//! Operations on NetBSD.

use crate::errno::{Errno, Result};
use crate::feature::Feature;
use crate::lockstep::generate::size;
use crate::raw::{Device, Map, Source, explored, page_size};
use fastrand::Rng;
use kcov_model::netbsd::{Kernel, NetBsd};
use kcov_model::{Call, Remap, Request, Work};
use kcov_sys::netbsd as sys;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::path::Path;

pub(crate) type Driver = NetBsd;

pub(crate) fn driver(features: &[Feature]) -> std::result::Result<Driver, String> {
    let ports = if features.contains(&Feature::Vhci) { 3 } else { 0 };
    let has = |feature| features.contains(&feature);
    let (attaches, comparisons) = (has(Feature::NetBsd10), has(Feature::Comparisons));
    Ok(NetBsd::new(Kernel { attaches, comparisons, ports, page: page_size() as u64 }))
}

/// The work that the kernel can do: a kernel thread explores a port.
pub(crate) fn works(features: &[Feature]) -> Vec<Work> {
    if features.contains(&Feature::Vhci) { vec![Work::Worker] } else { Vec::new() }
}

/// The kernel explores a port for about a second.
pub(crate) const WORK_IS_QUICK: bool = false;
pub(crate) const WORK_WEIGHT: u32 = 5;

/// init reaps orphaned processes.
pub(crate) fn prepare() -> Result<()> {
    Ok(())
}

/// Disables all sources. A source stays enabled if its device was attached elsewhere before the
/// close, and sources survive processes.
pub(crate) fn reset(device: &Path) -> Result<()> {
    for id in 0.. {
        let device = Device::open(device)?;
        match device.attach(Source { subsystem: 0, id }) {
            // There are no more sources, or the kernel has none.
            Err(Errno(libc::ENOENT | libc::EINVAL)) => break,
            attached => attached?,
        }
        match device.disable() {
            // It is not enabled.
            Err(Errno(libc::ENOENT)) => {}
            disabled => disabled?,
        }
        device.detach()?;
    }
    Ok(())
}

/// An unknown ioctl number: `_IO('K', 99)`.
const UNKNOWN_REQUEST: u32 = 0x2000_4b63;

pub(crate) fn ask(device: &Device, request: &Request, _: u32) -> Result<()> {
    match request {
        Request::Size(entries) => device.init_trace(*entries),
        Request::Enable(mode) => device.enable(*mode as u32),
        Request::Disable(_) => device.disable(),
        Request::Attach(subsystem, id) => device.attach(Source { subsystem: *subsystem, id: *id }),
        Request::Detach => device.detach(),
        Request::SizeUnreadable => device.request(sys::KCOV_IOC_SETBUFSIZE, 0),
        Request::EnableUnreadable => device.request(sys::KCOV_IOC_ENABLE, 0),
        Request::AttachUnreadable => device.request(sys::KCOV_IOC_REMOTE_ATTACH, 0),
        _ => device.request(UNKNOWN_REQUEST, 0),
    }
}

pub(crate) fn misuse(device: &Device, call: Call) -> Result<()> {
    match call {
        Call::Stat => nix::sys::stat::fstat(device).map(drop)?,
        Call::Nonblocking => fcntl(device, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map(drop)?,
        Call::Sync => nix::unistd::fsync(device)?,
        _ => nix::unistd::ftruncate(device, 0)?,
    }
    Ok(())
}

/// NetBSD has no equivalent.
pub(crate) fn remap(_: &Map, _: Remap) -> Result<()> {
    Ok(())
}

/// Lets the kernel explore a new device at port 1.
pub(crate) fn work(_: Work) -> Result<()> {
    explored(0, 1, || ());
    Ok(())
}

pub(crate) fn quietly<T>(_: &Driver, _: Work, body: impl FnOnce() -> T) -> T {
    body()
}

pub(crate) const MISUSES: &[Call] = {
    use Call::*;
    &[Read, Write, PositionedRead, PositionedWrite, Seek, Stat, Nonblocking, Sync, Truncate]
};
pub(crate) const REMAPS: &[Remap] = &[];
/// The weight of changes of protection among the operations: a source's limits are not known.
pub(crate) const PROTECT_WEIGHT: u32 = 0;
pub(crate) const OFFSETS: &[i64] = &[4096, 8192, -4096, 2 << 20, (2 << 20) + 4096];
/// An executable mapping is always refused.
pub(crate) const EXECUTABLE: bool = true;

pub(crate) fn good(request: &Request) -> Option<Request> {
    Some(match request {
        Request::Size(_) | Request::SizeUnreadable => Request::Size(512),
        Request::Enable(_) | Request::EnableUnreadable => Request::Enable(1),
        Request::Disable(_) => Request::Disable(0),
        Request::Attach(..) | Request::AttachUnreadable => Request::Attach(0, 0),
        _ => return None,
    })
}

pub(crate) fn request(rng: &mut Rng, _: &Driver) -> Request {
    match rng.u8(0..100) {
        0..30 => size(rng, 256 << 10, false),
        30..58 => Request::Enable(match rng.u8(0..12) {
            0 => 3,
            1 => u64::from(u32::MAX),
            2 => 0,
            3..6 => 2,
            _ => 1,
        }),
        58..84 => Request::Disable(0),
        84..91 => {
            // Ports, and one each of a bus and a port that do not exist.
            let ids = [0, 1, 2, sys::kcov_remote_vhci_id(99, 1), 99];
            Request::Attach(u64::from(rng.u8(0..8) == 0), rng.choice(ids).unwrap_or(0))
        }
        91..96 => Request::Detach,
        96 => Request::SizeUnreadable,
        97 => Request::EnableUnreadable,
        98 => Request::AttachUnreadable,
        _ => Request::Unknown,
    }
}
