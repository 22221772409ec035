//! Shortens a sequence that makes kernel and model diverge, and prints it as the source of a check.

use super::{Divergence, Lockstep};
use kcov_model::{Kind, Operation, Outcome};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Without an end, a kernel that hangs would make each attempt take long.
const LIMIT: Duration = Duration::from_secs(120);

/// Leaves out operations and merges threads as long as the sequence diverges.
pub(super) fn shrink(lockstep: &mut Lockstep, found: Divergence) -> Divergence {
    let end = Instant::now() + LIMIT;
    let mut best = found;
    // Asking only some threads takes a fraction of the time, if it shows the divergence.
    let thorough = !matches!(lockstep.again(&best.operations, false), Ok(Some(_)));
    let mut chunk = best.operations.len().div_ceil(2);
    while chunk > 0 && Instant::now() < end {
        let mut shorter = false;
        let mut start = 0;
        while start < best.operations.len() && Instant::now() < end {
            let mut candidate = best.operations.clone();
            candidate.drain(start..candidate.len().min(start + chunk));
            match try_it(lockstep, &candidate, &best, thorough) {
                Some(divergence) => {
                    best = divergence;
                    shorter = true;
                }
                None => start += chunk,
            }
        }
        if let Some(divergence) = fewer_names(lockstep, &best, thorough, end) {
            best = divergence;
            shorter = true;
        }
        if !shorter || chunk > 1 {
            chunk /= 2;
        }
    }
    best
}

/// Merges a thread into another one, or a duplicated descriptor into the original.
fn fewer_names(
    lockstep: &mut Lockstep,
    best: &Divergence,
    thorough: bool,
    end: Instant,
) -> Option<Divergence> {
    for (index, operation) in best.operations.iter().enumerate() {
        let Some((kind, copy, original)) = operation.copies() else { continue };
        if Instant::now() >= end {
            break;
        }
        let mut candidate = best.operations.clone();
        candidate.remove(index);
        for operation in &mut candidate {
            operation.visit_names(|of, name| {
                if of == kind && *name == copy {
                    *name = original;
                }
            });
        }
        let found = try_it(lockstep, &candidate, best, thorough);
        if found.is_some() {
            return found;
        }
    }
    None
}

fn try_it(
    lockstep: &mut Lockstep,
    candidate: &[Operation],
    best: &Divergence,
    thorough: bool,
) -> Option<Divergence> {
    // A sequence that cannot be executed is not a solution.
    let found = lockstep.again(candidate, thorough).ok().flatten()?;
    (found.operations.len() < best.operations.len()).then_some(found)
}

const WRITING: &str = "writing to a string cannot fail";

/// The check, in the form of those in `checks/`.
pub(super) fn check(divergence: &Divergence) -> String {
    let operations = renumbered(&divergence.operations);
    let (allowed, others) = divergence.allowed.split_first().expect("an outcome");
    let mut text = "    check(\"lockstep.found\", |cx| {\n        \
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
    write!(text, "\n        {last:?} -> {allowed:?}\n        \");\n    }}),\n").expect(WRITING);
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
