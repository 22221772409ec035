//! Checks of the safe crate that only apply to Linux.

mod adopt;
mod child_buffer;
mod inherited;
mod kernel_text;
mod lost;
mod modes;
mod path;
mod proposed;
mod remote;
mod session;

use crate::check::Check;

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    path::CHECKS,
    session::CHECKS,
    child_buffer::CHECKS,
    adopt::CHECKS,
    lost::CHECKS,
    inherited::CHECKS,
    remote::CHECKS,
    remote::sections::CHECKS,
    remote::late::CHECKS,
    modes::CHECKS,
    kernel_text::CHECKS,
    proposed::CHECKS,
];
