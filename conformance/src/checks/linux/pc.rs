//! Program counters: what only Linux shows or promises.

pub(super) mod full;
pub(super) mod place;
pub(super) mod soft;
