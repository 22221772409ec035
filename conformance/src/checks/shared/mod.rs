//! Checks of promises that both systems make, with the same id in both registries of claims. The
//! errors of refused calls differ, so the claims state them.

pub(crate) mod close;
pub(crate) mod cmp;
mod enable;
pub(crate) mod exec;
mod fork;
pub(crate) mod full;
pub(crate) mod kept;
mod map;
pub(crate) mod open;
pub(crate) mod pc;
pub(crate) mod thread;
mod turns;

use super::prelude::*;

pub const CHECKS: &[&[Check]] = &[
    open::CHECKS,
    map::CHECKS,
    enable::CHECKS,
    pc::CHECKS,
    cmp::CHECKS,
    full::CHECKS,
    kept::CHECKS,
    turns::CHECKS,
    cmp::operands::CHECKS,
    thread::CHECKS,
    close::CHECKS,
    fork::CHECKS,
    exec::CHECKS,
];
