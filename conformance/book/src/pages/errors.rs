//! The safe crate's errors: their kinds, and its advice.

use super::registry::{Both, REFERENCE, of_both_systems, operation, page_of};
use kcov::{ERRORS, ErrorKind, Operation, Row};
use kcov_sys::{errno, linux};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The safe crate's table of one system.
struct Table {
    system: &'static str,
    rows: &'static [&'static [Row]],
    errnos: &'static [(&'static str, i32)],
}

const TABLES: [Table; 2] = [
    Table { system: "Linux", rows: ERRORS[0], errnos: errno::linux::ALL },
    Table { system: "NetBSD", rows: ERRORS[1], errnos: errno::netbsd::ALL },
];

impl Table {
    fn rows(&self) -> impl DoubleEndedIterator<Item = &'static Row> {
        self.rows.iter().copied().flatten()
    }

    /// The name of a row's errno.
    fn errno(&self, row: &Row) -> &'static str {
        let found = self.errnos.iter().find(|errno| errno.1 == row.errno);
        found.unwrap_or_else(|| panic!("kcov_sys::errno has no {}", row.errno)).0
    }
}

/// The safe crate's kind of an error, for each system if they differ.
pub(super) fn kind(claim: &Both) -> String {
    let operation = operation(&claim.id);
    let kind = |side: usize| {
        let errno = claim.sides[side].as_ref()?.errno?;
        let table = &TABLES[side];
        // On Linux the same ioctl disables local and remote coverage.
        let is = |of: &str| operation == of || (operation, of) == ("DisableRemote", "Disable");
        let row = |row: &&Row| is(&format!("{:?}", row.operation)) && table.errno(row) == errno;
        Some(table.rows().rfind(row).map_or("–".to_owned(), |row| format!("`{:?}`", row.kind)))
    };
    match [kind(0), kind(1)] {
        [Some(one), Some(other)] if one != other => format!("Linux: {one}<br>NetBSD: {other}"),
        [Some(one), _] | [None, Some(one)] => one,
        [None, None] => String::new(),
    }
}

/// The rows of the crate's operations that `chosen` names.
pub(super) fn advice(chosen: impl Fn(&str) -> bool) -> Vec<Value> {
    let rows = TABLES.iter().flat_map(|table| {
        table.rows().map(move |row| {
            json!({
                "system": table.system,
                "operation": format!("{:?}", row.operation),
                "errno": table.errno(row),
                "kind": format!("{:?}", row.kind),
                "help": row.help(),
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
        for table in &TABLES {
            for row in table.rows().filter(|row| row.kind == kind) {
                let errno = format!("`{:?}`: {}", row.operation, table.errno(row));
                from.entry(errno).or_default().push(table.system);
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
    let errnos = all.into_iter();
    errnos
        .map(|(name, [linux, netbsd])| json!({ "name": name, "linux": linux, "netbsd": netbsd }))
        .collect()
}

/// The operations of `kcov/capi/kcov.h`.
const OF_HEADER: &[Operation] = {
    use Operation::*;
    &[Open, SetSize, Map, Enable, EnableRemote, Disable, DisableRemote, Attach]
};

/// Kinds that the header finds out without an errno of their own.
const FOUND: &[ErrorKind] = {
    use ErrorKind::*;
    &[DebugfsNotMounted, NotKcov, SizeOutOfLimits, UnknownSubsystem, TooManyHandles, Other]
};

/// The operations, kinds and rows of the header.
pub(super) fn header() -> Value {
    // It maps at no particular address, and has no proposed request.
    let is_used =
        |row: &&Row| OF_HEADER.contains(&row.operation) && row.kind != ErrorKind::AddressInUse;
    let rows = |table: &Table| table.rows[0].iter().filter(is_used).collect::<Vec<_>>();
    let has = |kind| TABLES.iter().flat_map(rows).any(|row| row.kind == kind);
    let kinds = ErrorKind::DOCUMENTED.iter().map(|(kind, _)| *kind);
    let kinds = kinds.filter(|kind| FOUND.contains(kind) || has(*kind));
    let named = |name: String, text, help| json!({ "name": name, "text": text, "help": help });
    let row = |table: &Table, row: &Row| {
        // libc does not know the kernel's own number.
        let is_own = row.errno == linux::ENOTSUPP;
        json!({
            "operation": format!("{:?}", row.operation),
            "errno": if is_own { row.errno.to_string() } else { table.errno(row).to_owned() },
            "kind": format!("{:?}", row.kind),
            "help": row.help().filter(|help| Some(*help) != row.kind.help()),
        })
    };
    let table = |(table, system): (&Table, &str)| {
        let rows: Vec<_> = rows(table).into_iter().map(|one| row(table, one)).collect();
        json!({ "system": system, "rows": rows })
    };
    json!({
        "kinds": kinds
            .map(|kind| named(format!("{kind:?}"), kind.text(), kind.help()))
            .collect::<Vec<_>>(),
        "operations": OF_HEADER
            .iter()
            .map(|it| named(format!("{it:?}"), it.text(), None))
            .collect::<Vec<_>>(),
        "tables": TABLES.iter().zip(["__linux__", "__NetBSD__"]).map(table).collect::<Vec<_>>(),
    })
}
