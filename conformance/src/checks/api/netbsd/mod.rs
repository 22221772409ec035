//! Checks of the safe crate that only say something on NetBSD.

mod device;
mod remote;
mod session;
mod status;

use crate::check::Check;

/// The registry of claims, by file name.
pub const REGISTRY: (&str, &str) =
    ("api-netbsd.toml", include_str!("../../../../claims/api-netbsd.toml"));

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[device::CHECKS, session::CHECKS, remote::CHECKS, status::CHECKS];
