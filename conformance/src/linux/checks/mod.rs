//! The checks of the Linux device, one file per topic.

pub(crate) mod api;
pub(crate) mod calls;
mod close;
mod cmp;
mod enable;
mod faults;
mod map;
pub(crate) mod open;
mod pc;
mod proposed;
mod race;
mod remote;
mod truncate;

use crate::check::Check;
use crate::checks::shared::mapped_of;
use crate::errno::Result;
use crate::raw::{Device, KCOV_TRACE_CMP, KCOV_TRACE_PC};

pub(crate) use open::max_words;

/// The system's name.
pub const WORD: &str = "linux";

pub(crate) use kcov_sys::errno::linux::ALL as ERRNOS;

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    open::CHECKS,
    map::CHECKS,
    enable::CHECKS,
    pc::CHECKS,
    cmp::CHECKS,
    cmp::operands::CHECKS,
    close::CHECKS,
    truncate::CHECKS,
    faults::CHECKS,
    remote::CHECKS,
    remote::handle::CHECKS,
    remote::late::CHECKS,
    remote::half_way::CHECKS,
    remote::release::CHECKS,
    remote::section::CHECKS,
    remote::partial::CHECKS,
    remote::child::CHECKS,
    remote::site::CHECKS,
    remote::soft::CHECKS,
    race::CHECKS,
    race::held::CHECKS,
    race::section::CHECKS,
    race::short::CHECKS,
    proposed::ext::CHECKS,
    proposed::uniq::CHECKS,
    proposed::unique::CHECKS,
];

/// All modes of upstream kernels.
pub(crate) const MODES: &[u32] = &[KCOV_TRACE_PC, KCOV_TRACE_CMP];

/// The size in words of a buffer that holds all records of an exec.
pub(crate) const EXEC_WORDS: u64 = 1 << 20;

/// The size in words of a buffer of several MiB.
const LARGE: u64 = 1 << 20;

/// Enables a device whose enabling thread has ended. The kernel has freed the device at once.
pub(crate) fn enable_freed(device: &Device, mode: u32) -> Result<()> {
    device.enable(mode)
}

/// Runs `held` in another thread, where it blocks on something that `meanwhile` provides.
pub(crate) fn while_held<T: Send>(held: impl FnOnce() -> T + Send, meanwhile: impl FnOnce()) -> T {
    std::thread::scope(|scope| {
        let other = scope.spawn(held);
        meanwhile();
        other.join().expect("the other thread")
    })
}
