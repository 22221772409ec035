//! The suite's promise on the host: which checks the guest runs. A guest's run does not count if it
//! omits a check, or skips one that the target's declaration allows to run.

use crate::verdict::{Check, Outcome};

/// The expected fate of one check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Promise {
    id: String,
    /// The reason to skip it, unless it runs.
    skipped: Option<String>,
}

/// Parses the suite's plan. Each line holds a check's id, and `runs`, or `skipped`
/// and the reason, separated by tabs.
pub fn parse(text: &str) -> Result<Vec<Promise>, String> {
    text.lines().map(|line| one(line).ok_or_else(|| format!("not a plan: `{line}`"))).collect()
}

fn one(line: &str) -> Option<Promise> {
    let words: Vec<_> = line.split('\t').collect();
    let (id, skipped) = match words[..] {
        [id, "runs"] => (id, None),
        [id, "skipped", reason] => (id, Some(reason.to_string())),
        _ => return None,
    };
    Some(Promise { id: id.to_string(), skipped })
}

/// Judges the suite's results by its promises for these checks, or for all. Other programs promise
/// nothing. An error means that results are missing or superfluous.
pub fn conclude(
    mut checks: Vec<Check>,
    promises: Option<&[Promise]>,
    asked: &[String],
) -> Result<Vec<Check>, String> {
    let Some(promises) = promises else { return Ok(checks) };
    let mut due: Vec<&Promise> =
        promises.iter().filter(|it| asked.is_empty() || asked.contains(&it.id)).collect();
    let place = |check: &Check| promises.iter().position(|promise| promise.id == check.id);
    checks.sort_by_cached_key(place);
    for check in &mut checks {
        let Some(index) = due.iter().position(|promise| promise.id == check.id) else {
            return Err(format!("{} has a result but was not requested", check.id));
        };
        let promise = due.remove(index);
        if let Some(wrong) = promise.broken_by(&check.outcome) {
            check.outcome = Outcome::Fail;
            check.diagnostics.push(wrong);
        }
    }
    match due.as_slice() {
        [] => Ok(checks),
        [one] => Err(format!("{} has no result", one.id)),
        [first, more @ ..] => Err(format!("{} and {} others have no result", first.id, more.len())),
    }
}

impl Promise {
    /// Returns how the outcome breaks the promise.
    fn broken_by(&self, outcome: &Outcome) -> Option<String> {
        match (outcome, &self.skipped) {
            (Outcome::Skip { reason }, promised) => {
                (promised.as_ref() != Some(reason)).then(|| {
                    format!("skipped, although the target declares every requirement: {reason}")
                })
            }
            (_, reason) => {
                reason.as_ref().map(|reason| format!("it ran, but should be skipped: {reason}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{conclude, parse};
    use crate::verdict::{Check, Outcome};
    use std::time::Duration;

    const PLAN: &str = "a\truns\nb\tskipped\tno net\nc\tskipped\tno disk\nd\truns\n";

    fn ran(id: &str, outcome: Outcome) -> Check {
        Check { id: id.into(), outcome, diagnostics: Vec::new(), time: Duration::ZERO }
    }

    fn skip(reason: &str) -> Outcome {
        Outcome::Skip { reason: reason.into() }
    }

    fn good() -> Vec<Check> {
        let (net, disk) = (ran("b", skip("no net")), ran("c", skip("no disk")));
        vec![ran("d", Outcome::Pass), ran("a", Outcome::Pass), net, disk]
    }

    fn judge(checks: Vec<Check>) -> Result<Vec<Check>, String> {
        conclude(checks, Some(&parse(PLAN).expect("a plan")), &[])
    }

    /// The ids of red checks, with their diagnostics.
    fn red(checks: &[Check]) -> Vec<String> {
        let red = checks.iter().filter(|check| check.outcome.is_red());
        red.map(|check| format!("{}: {}", check.id, check.diagnostics.join("; "))).collect()
    }

    #[test]
    fn what_was_promised_passes_in_the_order_of_the_plan() {
        let checks = judge(good()).expect("all results");
        assert_eq!(checks.iter().map(|check| check.id.as_str()).collect::<String>(), "abcd");
        assert_eq!(red(&checks), [""; 0]);
        // Other programs promise nothing.
        let checks = vec![ran("z", skip("why"))];
        assert_eq!(conclude(checks.clone(), None, &[]), Ok(checks));
    }

    #[test]
    fn a_check_that_was_left_out_or_added_is_no_verdict() {
        let why = |checks: Vec<Check>| judge(checks).expect_err("no verdict");
        assert_eq!(why(good()[1..].to_vec()), "d has no result");
        assert_eq!(why(good()[2..].to_vec()), "a and 1 others have no result");
        assert!(judge(Vec::new()).is_err());
        let more = [good(), vec![ran("e", Outcome::Pass)]].concat();
        assert_eq!(why(more), "e has a result but was not requested");
    }

    #[test]
    fn a_broken_promise_is_red() {
        const SKIPPED: &str = "skipped, although the target declares every requirement";
        for (index, outcome, said) in [
            (1, skip("no net"), format!("a: {SKIPPED}: no net")),
            (2, skip("no disk"), format!("b: {SKIPPED}: no disk")),
            (3, skip("tired"), format!("c: {SKIPPED}: tired")),
            (2, Outcome::Pass, "b: it ran, but should be skipped: no net".into()),
        ] {
            let mut checks = good();
            checks[index].outcome = outcome;
            assert_eq!(red(&judge(checks).expect("all results")), [said]);
        }
    }

    #[test]
    fn only_those_that_were_asked_for_are_due() {
        let plan = parse(PLAN).expect("a plan");
        let ask = |checks, ids: &[&str]| {
            let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
            conclude(checks, Some(&plan), &ids)
        };
        let one = || vec![ran("a", Outcome::Pass)];
        assert!(ask(one(), &["a"]).is_ok());
        assert_eq!(ask(one(), &["a", "d"]).expect_err("one less"), "d has no result");
        assert!(ask(good(), &["a"]).is_err());
    }

    #[test]
    fn plans_are_taken_strictly() {
        for text in ["a", "a\tmaybe", "a\truns\tno net", "a\tskipped", "a\teither"] {
            assert_eq!(parse(text), Err(format!("not a plan: `{text}`")));
        }
    }
}
