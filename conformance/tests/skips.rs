//! Nothing is skipped everywhere: each check runs on one of the targets of `cargo vm` at least.

use kcov_conformance::check::Check;
use kcov_conformance::checks;
use kcov_conformance::claims::Claims;
use kcov_conformance::declare::Declaration;
use kcov_conformance::kernel::Version;
use kcov_conformance::plan::reason_to_skip;
use serde::Deserialize;

#[derive(Deserialize)]
struct Targets {
    target: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    #[serde(default)]
    declares: Vec<String>,
    #[serde(default)]
    release: String,
}

/// The newest version that a release with that beginning can have.
fn newest(release: &str) -> Option<Version> {
    let major = || Some(Version(release.strip_suffix('.')?.parse().ok()?, u32::MAX));
    Version::of_release(release).or_else(major)
}

#[test]
fn every_check_runs_on_some_target() {
    let Targets { target } =
        toml::from_str(include_str!("../../ci/vm/data/targets.toml")).expect("the targets");
    let declaration = |words: &[String]| Declaration::parse(&words.join(",")).expect("our words");
    let targets: Vec<_> = target
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
