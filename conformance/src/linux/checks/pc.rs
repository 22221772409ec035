//! Program counters: behavior and promises that only Linux has.

pub(super) mod full;
pub(super) mod place;
pub(super) mod soft;
