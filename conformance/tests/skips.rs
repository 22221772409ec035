//! No check is skipped on a target but for what the target declares, or for the kernel's version.

use kcov_conformance::checks;
use kcov_conformance::claims::Claims;
use kcov_conformance::declare::{Declaration, Feature};
use serde::Deserialize;
use std::fs;
use std::path::Path;

#[derive(Deserialize)]
struct Targets {
    target: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    #[serde(default)]
    declares: Vec<String>,
}

/// Whether the reason of a skip is one that the declaration gives.
fn explained(id: &str, reason: &str, declared: &Declaration, claims: &Claims) -> bool {
    let check = checks::all().find(|check| check.id() == id);
    let (Some(check), Some(claim)) = (check, claims.get(id)) else { return false };
    let feature = |word: &str| Feature::ALL.iter().copied().find(|f| f.word() == word);
    if let Some(word) = reason.strip_prefix("the target does not declare ") {
        return feature(word).is_some_and(|f| check.needed().any(|g| g == f) && !declared.has(f));
    }
    if let Some(word) = reason.strip_prefix("the target declares ") {
        return feature(word).is_some_and(|f| check.without.contains(&f) && declared.has(f));
    }
    (reason.starts_with("claimed since ") && claim.since.is_some())
        || (reason.starts_with("claimed before ") && claim.until.is_some())
}

#[test]
fn declarations_explain_the_skips_of_all_snapshots() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let targets = fs::read_to_string(here.join("../ci/targets.toml")).expect("the targets");
    let Targets { target } = toml::from_str(&targets).expect("the targets");
    let claims = Claims::of_system();
    let mut skips = 0;
    for Target { name, declares } in target {
        let declared = Declaration::parse(&declares.join(",")).expect("words of ours");
        if declared.system != Some("linux") {
            continue;
        }
        let file = here.join("snapshots").join(format!("{name}.txt"));
        // A target that has not run yet has none, which `--snapshots check` complains of.
        let Ok(snapshot) = fs::read_to_string(&file) else { continue };
        for line in snapshot.lines() {
            let Some((id, reason)) = line.split_once(" skip: ") else { continue };
            assert!(explained(id, reason, &declared, &claims), "{name}: {line}");
            skips += 1;
        }
    }
    assert!(skips > 0, "some targets lack something");
}
