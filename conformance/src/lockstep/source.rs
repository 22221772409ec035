//! Prints a divergence as the source of a check.

use super::Divergence;
use kcov_model::{Kind, Operation, Outcome};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const WRITING: &str = "writing to a string cannot fail";

/// The check, in the form of those in `checks/`.
pub(super) fn check(divergence: &Divergence) -> String {
    let operations = renumbered(&divergence.operations);
    let (allowed, others) = divergence.allowed.split_first().expect("an outcome");
    let mut text = "checks! { \"lockstep.found\": found_by_lockstep }\n\n\
         fn found_by_lockstep(cx: &Context) {\n    \
         crate::lockstep::replay(cx.device(), \"\n"
        .to_owned();
    for (operation, outcome) in operations.iter().zip(&divergence.expected) {
        writeln!(text, "        {operation:?} -> {outcome:?}").expect(WRITING);
    }
    let seen = match &divergence.seen {
        Outcome::Counted(before, after) => format!("the count was {before} and became {after}"),
        Outcome::Other(what) => what.clone(),
        seen => format!("{seen:?}"),
    };
    write!(text, "        # The kernel: {seen}.").expect(WRITING);
    if !others.is_empty() {
        write!(text, " Allowed as well: {others:?}.").expect(WRITING);
    }
    let last = operations.last().expect("an operation");
    write!(text, "\n        {last:?} -> {allowed:?}\n    \");\n}}\n").expect(WRITING);
    text
}

/// Reads the lines of such a check.
pub(super) fn read(script: &str) -> Vec<(Operation, Outcome)> {
    let lines = script.lines().filter_map(|line| line.split_once(" -> "));
    lines
        .filter(|(operation, _)| !operation.trim_start().starts_with('#'))
        .map(|(operation, outcome)| {
            (operation.parse().expect("an operation"), outcome.parse().expect("an outcome"))
        })
        .collect()
}

/// Renumbers all names from 0.
fn renumbered(operations: &[Operation]) -> Vec<Operation> {
    let mut names: BTreeMap<Kind, BTreeMap<u32, u32>> = BTreeMap::new();
    // The first thread always exists.
    names.insert(Kind::Thread, [(0, 0)].into());
    let mut all = operations.to_vec();
    for operation in &mut all {
        operation.visit_names(|kind, name| {
            let names = names.entry(kind).or_default();
            let next = u32::try_from(names.len()).expect("few names");
            *name = *names.entry(*name).or_insert(next);
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{check, read};
    use crate::lockstep::Divergence;

    #[test]
    fn a_divergence_is_a_check() {
        let script = "
            StartThread { thread: T(0), new: T(4) } -> Done
            Open { thread: T(4), descriptor: D(7), access: ReadWrite } -> Done
            Ask { thread: T(0), descriptor: D(7), request: Enable(0) } -> Refused(EINVAL)";
        let (operations, mut expected): (Vec<_>, Vec<_>) = read(script).into_iter().unzip();
        let allowed = vec![expected.pop().expect("an outcome")];
        let seen = kcov_model::Outcome::Done;
        let text = check(&Divergence { operations, expected, allowed, seen });
        assert!(text.contains("# The kernel: Done.\n"), "{text}");
        assert_eq!(read(&text), read(&script.replace("T(4)", "T(1)").replace("D(7)", "D(0)")));
    }
}
