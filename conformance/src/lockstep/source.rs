//! Prints a divergence as the source of a check.

use super::Divergence;
use crate::model::{Kind, Operation, Outcome, Request};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The check, in the form of those in `checks/`.
pub(super) fn check(divergence: &Divergence) -> String {
    let operations = renumbered(&divergence.operations);
    let mut text = format!(
        "use crate::check::{{Context, checks}};\n\
         use crate::lockstep::replay;\n\
         use crate::model::{{{}}};\n\n\
         checks! {{ \"lockstep.found\": found_by_lockstep }}\n\n\
         fn found_by_lockstep(cx: &Context) {{\n    replay(cx.device(), &[\n",
        names(&operations)
    );
    let last = operations.len() - 1;
    let expected = divergence.expected.iter().chain(&divergence.allowed[..1]);
    for (index, (operation, outcome)) in operations.iter().zip(expected).enumerate() {
        if index == last {
            let others = match &divergence.allowed[1..] {
                [] => String::new(),
                others => format!(" Allowed as well: {others:?}."),
            };
            let seen = match &divergence.seen {
                Outcome::Counted(before, after) => {
                    format!("the count was {before} and became {after}")
                }
                Outcome::Changed(what) => what.clone(),
                seen => format!("{seen:?}"),
            };
            writeln!(text, "        // The kernel: {seen}.{others}").expect(WRITING);
        }
        line(&mut text, operation, outcome);
    }
    text + "    ]);\n}\n"
}

/// The items of the model that the source uses.
fn names(operations: &[Operation]) -> String {
    let any = |what: fn(&Operation) -> bool| operations.iter().any(what);
    let remote = |operation: &Operation| {
        matches!(operation, Operation::Ask { request: Request::RemoteEnable(_), .. })
    };
    let all = [
        ("Access::*", any(|o| matches!(o, Operation::Open { .. }))),
        ("Call::*", any(|o| matches!(o, Operation::Misuse { .. }))),
        ("D", any(|o| o.names().contains(&Kind::Descriptor))),
        ("Geometry", any(|o| matches!(o, Operation::Map { .. }))),
        ("Handle::*", any(remote)),
        ("M", any(|o| o.names().contains(&Kind::Mapping))),
        ("Memory::*", any(remote)),
        ("Operation::*", true),
        ("Outcome::*", true),
        ("Remap::*", any(|o| matches!(o, Operation::Remap { .. }))),
        ("Remote", any(remote)),
        ("Request::*", any(|o| matches!(o, Operation::Ask { .. }))),
        ("T", true),
    ];
    let used: Vec<_> = all.iter().filter(|(_, used)| *used).map(|(name, _)| *name).collect();
    used.join(", ")
}

const WRITING: &str = "writing to a string cannot fail";

fn line(text: &mut String, operation: &Operation, outcome: &Outcome) {
    let operation = format!("{operation:?}").replace("handles: [", "handles: vec![");
    writeln!(text, "        ({operation}, {outcome:?}),").expect(WRITING);
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
    use super::check;
    use crate::lockstep::Divergence;
    use crate::model::{Access, D, Operation, Outcome, Request, T};

    /// The printed source compiles: this is a copy.
    #[rustfmt::skip]
    mod printed {
use crate::check::{Context, checks};
use crate::lockstep::replay;
use crate::model::{Access::*, D, Operation::*, Outcome::*, Request::*, T};

checks! { "lockstep.found": found_by_lockstep }

fn found_by_lockstep(cx: &Context) {
    replay(cx.device(), &[
        (StartThread { thread: T(0), new: T(1) }, Done),
        (Open { thread: T(1), descriptor: D(0), access: ReadWrite }, Done),
        // The kernel: Done.
        (Ask { thread: T(0), descriptor: D(0), request: Enable(0) }, Refused("EINVAL")),
    ]);
}
    }

    #[test]
    fn a_divergence_is_a_check() {
        let (thread, descriptor) = (T(0), D(7));
        let text = check(&Divergence {
            operations: vec![
                Operation::StartThread { thread, new: T(4) },
                Operation::Open { thread: T(4), descriptor, access: Access::ReadWrite },
                Operation::Ask { thread, descriptor, request: Request::Enable(0) },
            ],
            expected: vec![Outcome::Done, Outcome::Done],
            allowed: vec![Outcome::Refused("EINVAL")],
            seen: Outcome::Done,
        });
        assert!(include_str!("source.rs").contains(&text), "{text}");
        assert_eq!(printed::CHECKS.len(), 1);
    }
}
