//! The plan of a run on a target: which checks run, and which are skipped and why.
//!
//! `run` follows it inside the guest. Outside, the runner asks this program for the same plan
//! (`plan`) and compares.

use crate::check::Check;
use crate::checks;
use crate::claims::{Claim, Claims, Status};
use crate::declare::Declaration;
use crate::feature::Feature;
use crate::kernel::Version;
use std::io::{self, Write};

/// The fate of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It runs.
    Runs,
    /// It is skipped for this reason.
    Skipped(String),
    /// It runs, or is skipped for one of these reasons: the program knows the needs of checks only
    /// for its own system.
    Either(Vec<String>),
}

/// Why the check is skipped on a target with this declaration and version of the interface, if it
/// is.
#[must_use]
pub fn reason_to_skip(
    check: &Check,
    claim: &Claim,
    interface: Version,
    target: &Declaration,
) -> Option<String> {
    if let Some(reason) = claim.excludes(interface) {
        return Some(reason);
    }
    if let Some(missing) = check.needed().find(|&feature| !target.has(feature)) {
        return Some(undeclared(missing));
    }
    let unwanted = check.without.iter().find(|&&feature| target.has(feature))?;
    Some(declared(*unwanted))
}

fn undeclared(feature: Feature) -> String {
    format!("the target does not declare {feature}")
}

fn declared(feature: Feature) -> String {
    format!("the target declares {feature}")
}

/// The check of a claim about this system, if this program contains it.
fn check_of(id: &str, system: &str) -> Option<&'static Check> {
    let named = |check: &&Check| check.id() == id;
    if system == crate::system::WORD {
        checks::all().find(named)
    } else {
        checks::of_every_system().find(named)
    }
}

/// The fate of the check of a claim about this system.
fn fate(claim: &Claim, system: &str, interface: Version, target: &Declaration) -> Fate {
    if let Some(check) = check_of(&claim.id, system) {
        let reason = reason_to_skip(check, claim, interface, target);
        return reason.map_or(Fate::Runs, Fate::Skipped);
    }
    if let Some(reason) = claim.excludes(interface) {
        return Fate::Skipped(reason);
    }
    let reason =
        |&feature| if target.has(feature) { declared(feature) } else { undeclared(feature) };
    Fate::Either(Feature::ALL.iter().map(reason).collect())
}

/// Writes a line for each check, separated by tabs: the id, `runs`, `skipped` or `either`, and the
/// reasons.
pub fn write(kernel: Version, target: &Declaration, out: &mut impl Write) -> io::Result<()> {
    let system = target.system.unwrap_or(crate::system::WORD);
    let interface = target.interface(kernel);
    for claim in Claims::of(system).iter().filter(|claim| claim.status == Status::Checked) {
        let (word, reasons) = match fate(claim, system, interface, target) {
            Fate::Runs => ("runs", Vec::new()),
            Fate::Skipped(reason) => ("skipped", vec![reason]),
            Fate::Either(reasons) => ("either", reasons),
        };
        write!(out, "{}\t{word}", claim.id)?;
        for reason in reasons {
            write!(out, "\t{reason}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Fate, fate, reason_to_skip};
    use crate::checks;
    use crate::claims::Claims;
    use crate::declare::Declaration;
    use crate::feature::Feature;
    use crate::kernel::Version;

    #[test]
    fn a_check_that_the_declaration_lets_run_is_run() {
        let claims = Claims::of_system();
        for check in checks::all() {
            let id = check.id();
            let claim = claims.get(&id).expect("every check has its claim");
            let version = claim.since.unwrap_or(Version(0, 0));
            let all: Vec<Feature> =
                Feature::ALL.iter().copied().filter(|f| !check.without.contains(f)).collect();
            let reason = |features: &[Feature], version| {
                let target = Declaration { features: features.to_vec(), system: None };
                reason_to_skip(check, claim, version, &target)
            };
            assert_eq!(reason(&all, version), None, "{id}");
            let needed: Vec<Feature> = check.needed().collect();
            assert_eq!(reason(&needed, version), None, "{id}");
            for missing in &needed {
                let rest: Vec<Feature> = all.iter().copied().filter(|f| f != missing).collect();
                let said = format!("the target does not declare {missing}");
                assert_eq!(reason(&rest, version), Some(said), "{id}");
            }
            for unwanted in check.without {
                let more: Vec<Feature> = needed.iter().copied().chain([*unwanted]).collect();
                let said = format!("the target declares {unwanted}");
                assert_eq!(reason(&more, version), Some(said), "{id}");
            }
            assert_eq!(
                reason(&all, claim.until.unwrap_or(version)).is_some(),
                claim.until.is_some()
            );
        }
    }

    /// The plan for another system lacks only the needs of its own checks.
    #[test]
    fn another_systems_run_is_told_as_far_as_it_is_known() {
        let of = |words: &str| {
            let target = Declaration::parse(words).expect("words of ours");
            let interface = target.interface(Version(9, 99));
            move |id: &str| {
                let system = target.system.expect("it is said");
                let claims = Claims::of(system);
                fate(claims.get(id).expect(id), system, interface, &target)
            }
        };
        let own = crate::system::WORD;
        let other = if own == "linux" { "netbsd" } else { "linux" };
        let shared = "cmp.four-words-per-comparison";
        for system in [own, other] {
            let words = format!("{system},kcov,instrumented");
            let why = "the target does not declare comparisons".to_owned();
            assert_eq!(of(&words)(shared), Fate::Skipped(why));
            assert_eq!(of(&format!("{words},comparisons"))(shared), Fate::Runs);
        }
        if other == "netbsd" {
            let why = "claimed since 10.0, the interface is that of 9.0".to_owned();
            let id = "remote.buffer-is-of-the-source";
            assert_eq!(of("netbsd,netbsd-9,kcov,instrumented")(id), Fate::Skipped(why));
            let fate = of("netbsd,netbsd-10,kcov,instrumented")(id);
            let Fate::Either(reasons) = fate else { panic!("{fate:?}") };
            let has = |why: &str| reasons.iter().any(|reason| reason == why);
            assert!(has("the target does not declare vhci") && has("the target declares kcov"));
            assert!(!has("the target declares vhci") && reasons.len() == Feature::ALL.len());
        }
    }
}
