//! Checks of the safe crate that only say something on Linux.

mod proposed;
mod protection;
mod remote;
mod session;
mod status;

use crate::check::Check;

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    session::CHECKS,
    remote::CHECKS,
    status::CHECKS,
    protection::CHECKS,
    protection::key::CHECKS,
    proposed::CHECKS,
];
