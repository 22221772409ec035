//! Checks of the safe crate that only say something on NetBSD.

mod device;
mod remote;
mod session;
mod status;

use crate::check::Check;

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[device::CHECKS, session::CHECKS, remote::CHECKS, status::CHECKS];
