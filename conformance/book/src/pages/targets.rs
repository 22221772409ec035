//! The differences between releases and between architectures, as claimed and declared. A run of a
//! target proves its declaration.

use super::registry::{LINUX, System, entry, releases};
use kcov_conformance::claims::{Claim, Claims, Status};
use kcov_conformance::declare::Declaration;
use kcov_conformance::feature::Feature;
use kcov_conformance::kernel::Version;
use kcov_conformance::plan::reason_to_skip;
use kcov_sys::arch::encoding;
use kcov_sys::linux::Requests;
use kcov_vm::arch::Arch;
use kcov_vm::target::{Kind, Target, Targets};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The target that other architectures are compared with, and its interface.
const USUAL: (&str, Version) = ("linux-7", Version(7, 3));

/// The runner's targets.
fn all_targets() -> Vec<Target> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/data/targets.toml");
    Targets::load(file.as_ref()).expect("the targets").all
}

fn declaration(words: &[String]) -> Declaration {
    Declaration::parse(&words.join(",")).expect("our words")
}

/// The names of a system's targets, with their declarations.
fn targets(system: System) -> Vec<(String, Declaration)> {
    let all = all_targets().into_iter().map(|it| (it.name, declaration(&it.declares)));
    all.filter(|(_, target)| target.system == Some(system.word)).collect()
}

/// The claims about some of a system's releases. A topic whose claims are all about the same ones is
/// one row.
pub(super) fn changes(system: System) -> Value {
    let claims = Claims::of(system.word);
    let all: Vec<&Claim> = claims.iter().collect();
    let changed: Vec<_> = all.iter().filter(|claim| releases(claim).is_some()).collect();
    let topic = |claim: &Claim| claim.id.split('.').next().unwrap_or_default().to_owned();
    let whole = |one: &Claim| {
        let mut of_topic = all.iter().filter(|claim| topic(claim) == topic(one));
        of_topic.all(|claim| releases(claim) == releases(one))
    };
    let (whole, some): (Vec<_>, Vec<_>) = changed.iter().copied().partition(|claim| whole(claim));
    let mut topics: BTreeMap<_, usize> = BTreeMap::new();
    for claim in whole {
        *topics.entry((topic(claim), releases(claim))).or_default() += 1;
    }
    let topic = |((name, releases), number)| json!({ "name": name, "releases": releases, "number": number });
    json!({
        "changed": changed.len(),
        "all": all.len(),
        "topics": topics.into_iter().map(topic).collect::<Vec<_>>(),
        "claims": some.iter().map(|claim| entry(claim)).collect::<Vec<_>>(),
    })
}

/// The features that some but not all of a system's targets declare.
pub(super) fn features(system: System) -> Vec<Value> {
    let targets = targets(system);
    let told = |&feature: &Feature| {
        let (having, lacking): (Vec<_>, Vec<_>) =
            targets.iter().partition(|(_, target)| target.has(feature));
        let all_but = lacking.len() < having.len();
        let shown = if all_but { &lacking } else { &having };
        (!having.is_empty() && !lacking.is_empty()).then(|| {
            json!({
                "word": feature.word(),
                "meaning": feature.meaning(),
                "all_but": all_but,
                "targets": shown.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            })
        })
    };
    Feature::ALL.iter().filter_map(told).collect()
}

/// The words and requests of each architecture, and the checks that only some of them run.
pub(super) fn architectures() -> Value {
    // The architecture of the target's programs.
    let programs = |target: &Target| target.userland.unwrap_or(target.arch);
    let mut targets = all_targets();
    targets.retain(|it| {
        it.name == USUAL.0 || it.kind != Kind::Netbsd && programs(it).name != Arch::usual().name
    });
    let row = |target: &Target| {
        let features = declaration(&target.declares);
        let word = if features.has(Feature::Words32) { 4 } else { 8 };
        let sizes = [(Feature::Pages16K, 16), (Feature::Pages64K, 64)];
        let requests = Requests::new(encoding(target.arch.triple), word);
        json!({
            "name": target.name,
            "programs": programs(target).machine,
            "word": word,
            "order": if features.has(Feature::BigEndian) { "big" } else { "little" },
            "page": sizes.iter().find(|size| features.has(size.0)).map_or(4, |size| size.1),
            "init_trace": requests.init_trace,
            "enable": requests.enable,
        })
    };
    let skips = |target: &Target, claim: &Claim| {
        claim.status() == Status::Checked
            && reason_to_skip(claim, USUAL.1, &declaration(&target.declares)).is_some()
    };
    let mut skipped = Vec::new();
    for claim in Claims::of(LINUX.word).iter() {
        let on: Vec<_> = targets.iter().filter(|target| skips(target, claim)).collect();
        if !on.is_empty() && on.len() < targets.len() {
            let on: Vec<_> = on.iter().map(|target| &target.name).collect();
            skipped.push(json!({ "claim": entry(claim), "on": on }));
        }
    }
    json!({ "targets": targets.iter().map(row).collect::<Vec<_>>(), "skipped": skipped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kcov_conformance::declare::SYSTEMS;

    /// The newest kernel version that starts with `release`.
    fn newest(release: &str) -> Version {
        let major = || Some(Version(release.strip_suffix('.')?.parse().ok()?, u32::MAX));
        Version::of_release(release).or_else(major).unwrap_or(Version(0, 0))
    }

    /// The declaration of a target, with the newest kernel version of the target. A user's kernel of
    /// NetBSD can have more than the target declares: vhci.
    fn declared(target: &Target) -> (Declaration, Version) {
        let more = (target.kind == Kind::Netbsd).then(|| "vhci".to_owned());
        let words: Vec<_> = target.declares.iter().cloned().chain(more).collect();
        (declaration(&words), newest(&target.release))
    }

    /// Nothing is skipped everywhere.
    #[test]
    fn every_check_runs_on_some_target() {
        let targets: Vec<_> = all_targets().iter().map(declared).collect();
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
}
