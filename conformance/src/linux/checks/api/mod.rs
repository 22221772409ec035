//! Checks of the safe crate that only apply to Linux.

mod child_buffer;
mod kernel_text;
mod modes;
mod path;
mod proposed;
mod protection;
mod recover;
mod remote;
mod session;

use crate::check::Check;

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    path::CHECKS,
    session::CHECKS,
    child_buffer::CHECKS,
    recover::CHECKS,
    remote::CHECKS,
    remote::sections::CHECKS,
    remote::late::CHECKS,
    modes::CHECKS,
    kernel_text::CHECKS,
    protection::CHECKS,
    protection::key::CHECKS,
    proposed::CHECKS,
];
