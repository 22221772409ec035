//! How the operations are done on NetBSD, and which ones there are.

use crate::declare::Feature;
use crate::errno::{Errno, Result};
use crate::lockstep::generate::size;
use crate::model::netbsd::{Kernel, NetBsd};
use crate::model::{Call, Remap, Request};
use crate::raw::{Device, Map, Source};
use fastrand::Rng;
use kcov_sys::netbsd as sys;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::path::Path;

/// The driver that is modelled.
pub(crate) type Driver = NetBsd;

/// The model of a kernel with these features.
pub(crate) fn driver(features: &[Feature]) -> std::result::Result<Driver, String> {
    Ok(NetBsd::new(Kernel::of(features)))
}

/// Whether [`work_in_background`] can be done.
pub(crate) fn has_background(_: &[Feature]) -> bool {
    false
}

/// Processes whose parents have ended are init's.
pub(crate) fn adopt_orphans() -> Result<()> {
    Ok(())
}

/// Disables all sources. One stays enabled if its device was attached elsewhere before it was closed,
/// and sources outlive processes.
pub(crate) fn reset(device: &Path) -> Result<()> {
    for id in 0.. {
        let device = Device::open(device)?;
        match device.attach(Source { subsystem: 0, id }) {
            // There are no more, or the kernel has none.
            Err(Errno(libc::ENOENT | libc::EINVAL)) => break,
            attached => attached?,
        }
        // Detaching disables.
        device.detach()?;
    }
    Ok(())
}

/// A request's number that no driver has: `_IO('K', 99)`.
const UNKNOWN_REQUEST: u32 = 0x2000_4b63;

/// Issues a request.
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

/// Uses the descriptor for what it is not made for, and what is tried on this system only.
pub(crate) fn misuse(device: &Device, call: Call) -> Result<()> {
    match call {
        Call::Stat => nix::sys::stat::fstat(device).map(drop)?,
        Call::Nonblocking => fcntl(device, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map(drop)?,
        Call::Sync => nix::unistd::fsync(device)?,
        _ => nix::unistd::ftruncate(device, 0)?,
    }
    Ok(())
}

/// There is nothing like it.
pub(crate) fn remap(_: &Map, _: Remap) -> Result<()> {
    Ok(())
}

/// There is nothing like it.
pub(crate) fn work_in_background() -> Result<()> {
    Ok(())
}

/// What a descriptor is not made for.
pub(crate) const MISUSES: &[Call] = &[
    Call::Read,
    Call::Write,
    Call::PositionedRead,
    Call::PositionedWrite,
    Call::Seek,
    Call::Stat,
    Call::Nonblocking,
    Call::Sync,
    Call::Truncate,
];
/// What can be asked of a mapping.
pub(crate) const REMAPS: &[Remap] = &[];
/// Offsets that are not 0.
pub(crate) const OFFSETS: &[i64] = &[4096, 8192, -4096, 2 << 20, (2 << 20) + 4096];
/// A mapping for executing is refused.
pub(crate) const EXECUTABLE: bool = true;

/// A random request.
pub(crate) fn request(rng: &mut Rng) -> Request {
    match rng.u8(0..100) {
        0..30 => size(rng, 256 << 10),
        30..58 => Request::Enable(match rng.u8(0..12) {
            0 => 3,
            1 => u64::from(u32::MAX),
            2 => 0,
            3..6 => 2,
            _ => 1,
        }),
        58..84 => Request::Disable(0),
        84..91 => {
            Request::Attach(u64::from(rng.u8(0..8) == 0), rng.choice([0, 1, 2, 99]).unwrap_or(0))
        }
        91..96 => Request::Detach,
        96 => Request::SizeUnreadable,
        97 => Request::EnableUnreadable,
        98 => Request::AttachUnreadable,
        _ => Request::Unknown,
    }
}
