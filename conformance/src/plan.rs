//! The plan of a run on a target: which checks run, and which are skipped and why.
//!
//! `run` follows it inside the guest. Outside, the runner asks this program for the same plan
//! (`plan`) and compares.

use crate::claims::{Claim, Claims, Status};
use crate::declare::Declaration;
use crate::kernel::Version;
use std::io::{self, Write};

/// Why the claim's check is skipped on a target with this declaration and version of the interface,
/// if it is.
pub fn reason_to_skip(claim: &Claim, interface: Version, target: &Declaration) -> Option<String> {
    if let Some(reason) = claim.excludes(interface) {
        return Some(reason);
    }
    if let Some(missing) = claim.needed().find(|&feature| !target.has(feature)) {
        return Some(format!("the target does not declare {missing}"));
    }
    let unwanted = claim.without.iter().find(|&&feature| target.has(feature))?;
    Some(format!("the target declares {unwanted}"))
}

/// Writes a line for each check of the target's system, separated by tabs: the id, and `runs`, or
/// `skipped` and the reason.
pub fn write(kernel: Version, target: &Declaration, out: &mut impl Write) -> io::Result<()> {
    let interface = target.interface(kernel);
    let claims = Claims::of(target.system.unwrap_or(crate::system::WORD));
    for claim in claims.iter().filter(|claim| claim.status() == Status::Checked) {
        match reason_to_skip(claim, interface, target) {
            None => writeln!(out, "{}\truns", claim.id)?,
            Some(reason) => writeln!(out, "{}\tskipped\t{reason}", claim.id)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::reason_to_skip;
    use crate::claims::{Claims, Status};
    use crate::declare::{Declaration, SYSTEMS};
    use crate::feature::Feature;
    use crate::kernel::Version;

    #[test]
    fn a_check_that_the_declaration_lets_run_is_run() {
        let all = SYSTEMS.iter().map(|system| Claims::of(system)).collect::<Vec<_>>();
        let claims = all.iter().flat_map(Claims::iter);
        for claim in claims.filter(|claim| claim.status() == Status::Checked) {
            let id = &claim.id;
            let version = claim.since.unwrap_or(Version(0, 0));
            let all: Vec<Feature> =
                Feature::ALL.iter().copied().filter(|f| !claim.without.contains(f)).collect();
            let reason = |features: &[Feature], version| {
                let target = Declaration { features: features.to_vec(), system: None };
                reason_to_skip(claim, version, &target)
            };
            assert_eq!(reason(&all, version), None, "{id}");
            let needed: Vec<Feature> = claim.needed().collect();
            assert_eq!(reason(&needed, version), None, "{id}");
            for missing in &needed {
                let rest: Vec<Feature> = all.iter().copied().filter(|f| f != missing).collect();
                let said = format!("the target does not declare {missing}");
                assert_eq!(reason(&rest, version), Some(said), "{id}");
            }
            for unwanted in &claim.without {
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

    #[test]
    fn the_plan_for_another_system_is_as_exact() {
        let plan = |words: &str| {
            let target = Declaration::parse(words).expect("words of ours");
            let mut plan = Vec::new();
            super::write(Version(9, 99), &target, &mut plan).expect("a plan");
            String::from_utf8(plan).expect("text")
        };
        let line = |plan: &str, id: &str| {
            let line = plan.lines().find_map(|line| line.strip_prefix(id)?.strip_prefix('\t'));
            line.expect(id).to_owned()
        };
        let id = "remote.buffer-is-of-the-source";
        let nine = plan("netbsd,netbsd-9,kcov,instrumented");
        let why = "skipped\tclaimed since 10.0, the interface is that of 9.0";
        assert_eq!(line(&nine, id), why);
        let ten = plan("netbsd,netbsd-10,kcov,instrumented");
        assert_eq!(line(&ten, id), "skipped\tthe target does not declare vhci");
        assert_eq!(line(&plan("netbsd,netbsd-10,kcov,instrumented,vhci"), id), "runs");
    }

    #[test]
    fn the_device_and_its_records_are_needed_unless_it_is_about_their_absence() {
        use Feature::{Instrumented, Kcov, Remote};
        let needed = |fields: &str| {
            let text = format!(
                "authority = 'driver'\nsource = 's'\n\
                 claim = [{{ id = 'a.b', at = ['s', 'l'], text = 'c.', {fields} }}]"
            );
            let claims = crate::claims::parse("test", &text);
            claims[0].needed().collect::<Vec<_>>()
        };
        assert_eq!(needed("needs = ['remote']"), [Kcov, Instrumented, Remote]);
        assert_eq!(needed("without = ['kcov']"), []);
        assert_eq!(needed("without = ['instrumented']"), [Kcov]);
    }
}
