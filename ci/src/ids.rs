//! Ids of checks that the user names: each has to be one of the suite's.

use crate::error::{Error, Result};
use crate::programs::SUITE;
use crate::system::System;

/// Refuses ids that are not among those that the suite has for a system.
pub fn validate(wanted: &[String], known: &[String], system: System) -> Result<()> {
    match wanted.iter().find(|id| !known.contains(id)) {
        None => Ok(()),
        Some(id) => Err(Error::usage(unknown_check(id, known, system))),
    }
}

fn unknown_check(id: &str, known: &[String], system: System) -> String {
    let mut near: Vec<_> = known
        .iter()
        .map(|other| (distance(id, other), other.as_str()))
        .filter(|(distance, other)| other.contains(id) || *distance <= id.len().div_ceil(3))
        .collect();
    near.sort_unstable();
    let near: Vec<_> = near.into_iter().take(3).map(|(_, other)| other).collect();
    match near.as_slice() {
        [] => format!(
            "no check `{id}` on {system}; `{} list --system {}` names all {}",
            SUITE.binary,
            system.word(),
            known.len()
        ),
        near => format!("no check `{id}` on {system}; near it: {}", near.join(", ")),
    }
}

/// How many letters have to be added, removed or changed.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, b) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_the_known_ones() {
        for (one, other, expected) in
            [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("same", "same", 0)]
        {
            assert_eq!(distance(one, other), expected);
            assert_eq!(distance(other, one), expected);
        }
    }

    #[test]
    fn unknown_checks_are_answered_with_near_ones() {
        let known = ["linux.open.twice", "linux.enable.ebusy", "api.trace"].map(String::from);
        let unknown = |id| unknown_check(id, &known, System::Linux);
        let message = "no check `linux.enable.ebsy` on Linux; near it: linux.enable.ebusy";
        assert_eq!(unknown("linux.enable.ebsy"), message);
        assert!(unknown("linux.open").ends_with("linux.open.twice"));
        assert!(unknown("zzz").ends_with("list --system linux` names all 3"));
    }
}
