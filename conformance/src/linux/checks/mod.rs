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

use crate::checks::prelude::*;
use crate::checks::shared::exec::traced_helper;
use crate::checks::shared::full::{enabled_page, fill_up, is_filled, nothing_is_written};
use crate::checks::shared::kept::unchanged;
use calls::{CASES, MAGIC, WIDE, compare_argument, seek_nowhere, switch_over_argument};
use kcov_sys::linux::{KCOV_CMP_CONST, kcov_cmp_size};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Uid, setuid};

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

/// The size in words of a buffer of several MiB.
const LARGE: u64 = 1 << 20;

/// Runs `held` in another thread, where it blocks on something that `meanwhile` provides.
pub(crate) fn while_held<T: Send>(held: impl FnOnce() -> T + Send, meanwhile: impl FnOnce()) -> T {
    std::thread::scope(|scope| {
        let other = scope.spawn(held);
        meanwhile();
        other.join().expect("the other thread")
    })
}
