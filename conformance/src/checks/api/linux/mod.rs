//! Checks of the safe crate that only say something on Linux.

mod remote;
mod session;
mod status;

use crate::check::Check;

/// The registry of claims, by file name.
pub const REGISTRY: (&str, &str) =
    ("api-linux.toml", include_str!("../../../../claims/api-linux.toml"));

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[session::CHECKS, remote::CHECKS, status::CHECKS];
