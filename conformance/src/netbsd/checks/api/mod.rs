//! Checks of the safe crate that only apply to NetBSD.

mod device;
mod kernel_text;
mod modes;
mod remote;
mod session;

use crate::check::Check;

/// The checks, by topic.
pub const CHECKS: &[&[Check]] =
    &[device::CHECKS, session::CHECKS, remote::CHECKS, modes::CHECKS, kernel_text::CHECKS];
