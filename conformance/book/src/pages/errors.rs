//! The safe crate's errors: their kinds, and its advice.

use super::registry::{Both, REFERENCE, of_both_systems, operation, page_of};
use kcov::{ERRORS, ErrorKind, Row};
use kcov_sys::errno;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The systems' names, with their error tables and errnos.
fn tables() -> [(&'static str, &'static [Row], &'static [(&'static str, i32)]); 2] {
    [("Linux", ERRORS[0], errno::linux::ALL), ("NetBSD", ERRORS[1], errno::netbsd::ALL)]
}

fn name(names: &[(&'static str, i32)], number: i32) -> &'static str {
    let found = names.iter().find(|errno| errno.1 == number);
    found.unwrap_or_else(|| panic!("kcov_sys::errno has no {number}")).0
}

/// The safe crate's kind of an error, for each system if they differ.
pub(super) fn kind(claim: &Both) -> String {
    let operation = operation(&claim.id);
    let kind = |side: usize| {
        let errno = claim.sides[side].as_ref()?.errno?;
        let (_, table, names) = tables()[side];
        // On Linux the same ioctl disables local and remote coverage.
        let is = |of: &str| operation == of || (operation, of) == ("DisableRemote", "Disable");
        let row =
            |row: &&Row| is(&format!("{:?}", row.operation)) && name(names, row.errno) == errno;
        Some(table.iter().rfind(row).map_or("–".to_owned(), |row| format!("`{:?}`", row.kind)))
    };
    match [kind(0), kind(1)] {
        [Some(one), Some(other)] if one != other => format!("Linux: {one}<br>NetBSD: {other}"),
        [Some(one), _] | [None, Some(one)] => one,
        [None, None] => String::new(),
    }
}

/// The rows of the crate's operations that `chosen` names.
pub(super) fn advice(chosen: impl Fn(&str) -> bool) -> Vec<Value> {
    let rows = tables().into_iter().flat_map(|(system, table, names)| {
        table.iter().map(move |row| {
            json!({
                "system": system,
                "operation": format!("{:?}", row.operation),
                "errno": name(names, row.errno),
                "kind": format!("{:?}", row.kind),
                "help": row.help,
            })
        })
    });
    rows.filter(|row| row["operation"].as_str().is_some_and(&chosen)).collect()
}

/// The rows of operations without a page.
pub(super) fn other_errors() -> Vec<Value> {
    let all = REFERENCE.page.iter().flat_map(|page| &page.operations).collect::<Vec<_>>();
    advice(|operation| !all.iter().any(|known| *known == operation))
}

/// The kinds, each with the errnos of operations that have it.
pub(super) fn kinds() -> Vec<Value> {
    let kind = |&(kind, meaning): &(ErrorKind, &str)| {
        let mut from: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (system, table, names) in tables() {
            for row in table.iter().filter(|row| row.kind == kind) {
                let errno = format!("`{:?}`: {}", row.operation, name(names, row.errno));
                from.entry(errno).or_default().push(system);
            }
        }
        let told = |(errno, systems): (String, Vec<&str>)| match systems[..] {
            [system] => format!("{errno} on {system}"),
            _ => errno,
        };
        let from: Vec<_> = from.into_iter().map(told).collect();
        json!({ "name": format!("{kind:?}"), "meaning": meaning, "from": from })
    };
    ErrorKind::DOCUMENTED.iter().map(kind).collect()
}

/// For each errno the pages with its conditions.
pub(super) fn errnos() -> Vec<Value> {
    let mut all: BTreeMap<&str, [Vec<Value>; 2]> = BTreeMap::new();
    for claim in of_both_systems() {
        let page = page_of(&claim.id);
        let page = json!({ "title": page.title, "file": page.file });
        for (side, claim) in claim.sides.iter().enumerate() {
            if let Some(errno) = claim.as_ref().and_then(|claim| claim.errno) {
                let pages = &mut all.entry(errno).or_default()[side];
                if !pages.contains(&page) {
                    pages.push(page.clone());
                }
            }
        }
    }
    let errno = |(name, [linux, netbsd]): (&str, [Vec<Value>; 2])| json!({ "name": name, "linux": linux, "netbsd": netbsd });
    all.into_iter().map(errno).collect()
}
