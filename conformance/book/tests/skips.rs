//! Nothing is skipped everywhere: each check runs on one of the targets of `cargo vm` at least.

use kcov_conformance::check::Check;
use kcov_conformance::checks;
use kcov_conformance::claims::Claims;
use kcov_conformance::declare::Declaration;
use kcov_conformance::kernel::Version;
use kcov_conformance::plan::reason_to_skip;
use kcov_vm::target::Targets;
use std::path::Path;

/// The newest version that a release with that beginning can have.
fn newest(release: &str) -> Option<Version> {
    let major = || Some(Version(release.strip_suffix('.')?.parse().ok()?, u32::MAX));
    Version::of_release(release).or_else(major)
}

#[test]
fn every_check_runs_on_some_target() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/vm/data/targets.toml");
    let list = Targets::load(&file).expect("the targets").all;
    let declaration = |words: &[String]| Declaration::parse(&words.join(",")).expect("our words");
    let targets: Vec<_> = list
        .iter()
        .map(|target| (declaration(&target.declares), &target.release))
        .filter(|(declared, _)| declared.system == Some("linux"))
        .map(|(declared, release)| (declared, newest(release).expect("a release")))
        .collect();
    let claims = Claims::of_system();
    let nowhere: Vec<_> = checks::all()
        .filter(|check| {
            let claim = claims.get(&check.id()).expect("every check has its claim");
            let skipped = |(target, kernel): &(Declaration, Version)| {
                reason_to_skip(check, claim, target.interface(*kernel), target).is_some()
            };
            targets.iter().all(skipped)
        })
        .map(Check::id)
        .collect();
    assert_eq!(nowhere, [""; 0], "skipped on every target");
}
