//! The checks that both systems share, those of the system that this program is compiled for, and
//! those of the safe crate.

pub(crate) mod api;
pub(crate) mod shared;

use crate::check::Check;

/// The vocabulary of checks.
#[allow(unused_imports, reason = "each system's checks use some of it")]
pub(crate) mod prelude {
    pub(crate) use super::shared::*;
    pub(crate) use crate::check::{Check, Context, check, on_buffer, on_device, slow};
    pub(crate) use crate::errno::{Errno, Result};
    pub(crate) use crate::raw::*;
    pub(crate) use crate::system::checks::{EXEC_WORDS, enable_freed, max_words};
    pub(crate) use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
    pub(crate) use nix::fcntl::{FcntlArg, OFlag, fcntl};
    pub(crate) use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
    pub(crate) use nix::unistd::{dup2, pipe, read, write};
    pub(crate) use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
    pub(crate) use std::fs::File;
    pub(crate) use std::io::{Read, Write};
    pub(crate) use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
    pub(crate) use std::os::unix::process::CommandExt;
    pub(crate) use std::process::{Command, Stdio};
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::time::{Duration, Instant};
}

/// All checks, in the order in which they run.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let api = api::CHECKS.iter().chain(crate::system::checks::api::CHECKS);
    let device = shared::CHECKS.iter().chain(crate::system::checks::CHECKS);
    device.chain(api).flat_map(|topic| topic.iter())
}

#[cfg(test)]
mod tests {
    use crate::claims::{Claims, Status};
    use std::collections::BTreeSet;

    #[test]
    fn checks_and_checked_claims_are_the_same_ids() {
        let claims = Claims::of_system();
        let mut checks = BTreeSet::new();
        for check in super::all() {
            assert!(checks.insert(check.id), "two checks have the id {}", check.id);
        }
        let checked = claims.iter().filter(|claim| claim.status() == Status::Checked);
        let checked: BTreeSet<_> = checked.map(|claim| claim.id.as_str()).collect();
        assert_eq!(checks.difference(&checked).collect::<Vec<_>>(), [&""; 0]);
        assert_eq!(checked.difference(&checks).collect::<Vec<_>>(), [&""; 0]);
    }
}
