//! Nothing is skipped everywhere: each check runs on one of the targets of `cargo vm` at least.

use kcov_conformance::claims::{Claims, Status};
use kcov_conformance::declare::{Declaration, SYSTEMS};
use kcov_conformance::kernel::Version;
use kcov_conformance::plan::reason_to_skip;
use kcov_vm::target::{Target, Targets};
use std::path::Path;

/// The newest version that a release with that beginning can have. NetBSD's targets name none: they
/// declare the interface.
fn newest(release: &str) -> Version {
    let major = || Some(Version(release.strip_suffix('.')?.parse().ok()?, u32::MAX));
    Version::of_release(release).or_else(major).unwrap_or(Version(0, 0))
}

/// The declarations of a target, with its newest kernel. A user's kernel of NetBSD adds what the
/// target does not declare.
fn declarations(target: &Target) -> Vec<(Declaration, Version)> {
    let users = target.abi.values().map(|abi| [&abi.declares[..], &["vhci".to_owned()]].concat());
    let all = users.chain([target.declares.clone()]).filter(|words| !words.is_empty());
    let parsed = all.map(|words| Declaration::parse(&words.join(",")).expect("our words"));
    parsed.map(|declared| (declared, newest(&target.release))).collect()
}

#[test]
fn every_check_runs_on_some_target() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/data/targets.toml");
    let list = Targets::load(&file).expect("the targets").all;
    let targets: Vec<_> = list.iter().flat_map(declarations).collect();
    for system in SYSTEMS {
        let of_it = |declared: &Declaration| declared.system == Some(*system);
        let claims = Claims::of(system);
        let checked = claims.iter().filter(|claim| claim.status() == Status::Checked);
        let runs = |id: &&str| {
            let claim = claims.get(id).expect("a claim");
            targets.iter().filter(|(target, _)| of_it(target)).any(|(target, kernel)| {
                reason_to_skip(claim, target.interface(*kernel), target).is_none()
            })
        };
        let nowhere: Vec<_> =
            checked.map(|claim| claim.id.as_str()).filter(|id| !runs(id)).collect();
        assert_eq!(nowhere, [""; 0], "skipped on every target of {system}");
    }
}
