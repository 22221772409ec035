//! The checks that both systems share, those of the system that this program is compiled for, and
//! those of the safe crate.

pub(crate) mod api;
pub(crate) mod prelude;
pub(crate) mod setup;
pub(crate) mod shared;

use crate::check::Check;

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
