//! The error conditions with their errnos, and the safe crate's kinds for them.

use super::claims::{self, Claim};
use super::reference::{self, PAGES, Page};
use super::registry::{Entry, with_linux_names};
use super::{MARK, WRITING, plain};
use kcov_conformance::errno::Errno;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The safe crate's table of one system, as printed by the crate's own tests.
struct Table {
    system: &'static str,
    text: &'static str,
}

const LINUX: Table = Table {
    system: "Linux",
    text: include_str!(
        "../../../../kcov/src/error/snapshots/kcov__error__tests__every_row_of_the_table_as_text.snap"
    ),
};
const NETBSD: Table = Table {
    system: "NetBSD",
    text: include_str!(
        "../../../../kcov/src/error/snapshots/kcov__error__tests__every_row_of_netbsds_table_as_text.snap"
    ),
};

/// One errno of one operation of the safe crate.
struct Meaning {
    operation: String,
    errno: String,
    kind: String,
    help: String,
}

impl Table {
    /// # Panics
    ///
    /// If the file does not have the format of the test in `kcov/src/error.rs`.
    fn rows(&self) -> Vec<Meaning> {
        let body = self.text.splitn(3, "---\n").nth(2).expect("a snapshot");
        let lines: Vec<&str> = body.lines().collect();
        let row = |three: &[&str]| {
            let [head, message, _source] = *three else { panic!("{three:?}: not three lines") };
            let words: Vec<&str> = head.split(' ').collect();
            let [operation, number, kind] = *words else { panic!("{head:?}: not three words") };
            Meaning {
                operation: operation.to_owned(),
                errno: self.errno(number.parse().expect("a number")),
                kind: kind.to_owned(),
                help: message.split_once("; ").map_or("", |(_, help)| help).to_owned(),
            }
        };
        lines.chunks(3).map(row).collect()
    }

    /// The name of a number. Up to 34 all Unix systems agree; others do not match the host's on
    /// both systems.
    fn errno(&self, number: i32) -> String {
        let name = match (number, self.system) {
            (11, "Linux") | (35, "NetBSD") => Some("EAGAIN"),
            (..=34, _) => Errno(number).name(),
            (38, "Linux") => Some("ENOSYS"),
            (45, "NetBSD") | (95, "Linux") => Some("EOPNOTSUPP"),
            (55, "NetBSD") => Some("ENOBUFS"),
            (kcov_sys::linux::ENOTSUPP, "Linux") => Some("ENOTSUPP"),
            _ => None,
        };
        let unknown = || panic!("errno {number} of {} has no name here", self.system);
        name.unwrap_or_else(unknown).to_owned()
    }
}

/// The safe crate's operation that fails, by beginnings of ids. The longest one decides; where it is
/// empty, no call of the crate provokes the error.
const OPERATIONS: &[(&str, &str)] = &[
    ("open.unprivileged", "Open"),
    ("open.not-built-in", "Open"),
    ("open.locked-down", "Open"),
    ("faults.open", "Open"),
    ("size.", "SetSize"),
    ("faults.init-trace", "SetSize"),
    ("map.", "Map"),
    ("faults.map", "Map"),
    ("enable.", "Enable"),
    ("close.while-enabled-keeps-the-thread-busy", "Enable"),
    ("fork.", "Enable"),
    ("exec.", "Enable"),
    ("disable.", "Disable"),
    ("close.while-enabled-nobody-can-disable", "Disable"),
    ("remote.", "EnableRemote"),
    ("faults.remote-enable", "EnableRemote"),
    ("remote.attach.", "Attach"),
    ("remote.attach.detach-", ""),
    ("remote.release.", "DisableRemote"),
    ("remote.release.close-keeps-handles", "EnableRemote"),
    ("remote.not-enabled-disable-", "DisableRemote"),
    ("proposed.unique.", "EnableUnique"),
    ("proposed.unique.reset-", "ResetTrace"),
];

fn operation(id: &str) -> &'static str {
    let fitting = OPERATIONS.iter().filter(|(beginning, _)| id.starts_with(beginning));
    fitting.max_by_key(|(beginning, _)| beginning.len()).map_or("", |(_, operation)| operation)
}

/// A page's errors, and the safe crate's advice on those of the page's operations.
pub(super) fn section(page: &Page, claims: &[Claim]) -> String {
    let mut text = String::new();
    if !claims.is_empty() {
        text.push_str("## Errors\n\n| Linux | NetBSD | Condition | Kind |\n|---|---|---|---|\n");
    }
    for claim in claims {
        let [linux, netbsd] = claim.sides();
        writeln!(
            text,
            "| {} | {} | {}<br><small><a id=\"{id}\" href=\"#{id}\"><code>{id}</code></a> · {}</small> | {} |",
            errno(linux),
            errno(netbsd),
            claim.text(condition),
            claim.origin(),
            kinds(operation(claim.id()), [(linux, &LINUX.rows()), (netbsd, &NETBSD.rows())]),
            id = claim.id(),
        )
        .expect(WRITING);
    }
    text.push('\n');
    text.push_str(&advice(|row| page.operations.contains(&row.operation)));
    text
}

/// The text without what the columns say: the errno, and the name of the ioctl on NetBSD.
fn condition(entry: &Entry) -> String {
    let errno = entry.errno.as_deref().unwrap_or_default();
    with_linux_names(&entry.text).replace(&format!("returns {errno}"), "fails")
}

fn errno(entry: Option<&Entry>) -> &str {
    entry.and_then(|entry| entry.errno.as_deref()).unwrap_or_default()
}

/// The safe crate's kind, for each system if they differ.
fn kinds(operation: &str, sides: [(Option<&Entry>, &Vec<Meaning>); 2]) -> String {
    let kind = |(entry, table): (Option<&Entry>, &Vec<Meaning>)| {
        let errno = entry?.errno.as_deref()?;
        // On Linux the same ioctl disables local and remote coverage.
        let is = |of: &str| operation == of || (operation, of) == ("DisableRemote", "Disable");
        let row = |row: &&Meaning| is(&row.operation) && row.errno == errno;
        Some(table.iter().rfind(row).map_or("–".to_owned(), |row| format!("`{}`", row.kind)))
    };
    match sides.map(kind) {
        [Some(one), Some(other)] if one != other => format!("Linux: {one}<br>NetBSD: {other}"),
        [Some(one), _] | [None, Some(one)] => one,
        [None, None] => String::new(),
    }
}

/// The safe crate's advice on the chosen errors.
fn advice(chosen: impl Fn(&Meaning) -> bool) -> String {
    let mut text = String::new();
    for table in [LINUX, NETBSD] {
        for row in table.rows().into_iter().filter(&chosen) {
            let Meaning { operation, errno, kind, help } = row;
            let (system, help) = (table.system, plain(&help));
            writeln!(text, "| {system} | `{operation}` | {errno} | `{kind}` | {help} |")
                .expect(WRITING);
        }
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "| System | Operation of the crate | Errno | Kind | Remedy |\n|---|---|---|---|---|\n{text}\n"
    )
}

/// For each errno the pages with its conditions.
pub(super) fn by_errno() -> String {
    let mut all: BTreeMap<String, [Vec<String>; 2]> = BTreeMap::new();
    for claim in claims::of_both_systems() {
        let page = reference::page_of(claim.id());
        let link = format!("[{}](generated/{}#errors)", page.title, page.file);
        for (side, entry) in claim.sides().into_iter().enumerate() {
            if let Some(errno) = entry.and_then(|entry| entry.errno.clone()) {
                let links = &mut all.entry(errno).or_default()[side];
                if !links.contains(&link) {
                    links.push(link.clone());
                }
            }
        }
    }
    let mut text = String::from(MARK);
    for (errno, sides) in all {
        writeln!(text, "## {errno} {{#{errno}}}\n").expect(WRITING);
        for (system, links) in ["Linux", "NetBSD"].iter().zip(sides) {
            if !links.is_empty() {
                writeln!(text, "- {system}: {}", links.join(", ")).expect(WRITING);
            }
        }
        text.push('\n');
    }
    text
}

/// The safe crate's kinds: what they mean, and which errnos of which operations have them.
pub(super) fn by_kind() -> String {
    let [linux, netbsd] = [LINUX.rows(), NETBSD.rows()];
    let mut text = format!("{MARK}| Kind | Meaning | From |\n|---|---|---|\n");
    for (kind, meaning) in documented_kinds() {
        let mut from: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (system, rows) in [("Linux", &linux), ("NetBSD", &netbsd)] {
            for row in rows.iter().filter(|row| row.kind == kind) {
                let errno = format!("`{}`: {}", row.operation, row.errno);
                from.entry(errno).or_default().push(system);
            }
        }
        let told = |(errno, systems): (&String, &Vec<&str>)| match systems[..] {
            [system] => format!("{errno} on {system}"),
            _ => errno.clone(),
        };
        let mut from = from.iter().map(told).collect::<Vec<_>>().join("<br>");
        if from.is_empty() {
            from.push('–');
        }
        writeln!(text, "| `{kind}` | {} | {from} |", plain(&meaning)).expect(WRITING);
    }
    let here = |row: &Meaning| !PAGES.iter().any(|page| page.operations.contains(&row.operation));
    format!("{text}\nOther operations:\n\n{}", advice(here))
}

/// Each variant of `kcov::ErrorKind` with its documentation.
fn documented_kinds() -> Vec<(String, String)> {
    let source = include_str!("../../../../kcov/src/error/mod.rs");
    let body = source.split_once("\n    ErrorKind {\n").expect("the kinds").1;
    let (mut all, mut text) = (Vec::new(), String::new());
    for line in body.lines().take_while(|line| *line != "    }").map(str::trim) {
        if let Some(more) = line.strip_prefix("/// ") {
            text = if text.is_empty() { more.to_owned() } else { text + " " + more };
        } else if let Some((kind, _)) = line.split_once(": \"")
            && !text.is_empty()
        {
            all.push((kind.to_owned(), std::mem::take(&mut text)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> String {
        let page = reference::page_of(id).text();
        let row = page.lines().find(|line| line.contains(&format!("id=\"{id}\"")));
        row.expect("a row").to_owned()
    }

    #[test]
    fn a_refusal_of_both_systems_is_one_row() {
        let row = row("enable.before-sizing-is-refused");
        assert!(row.starts_with("| EINVAL | ENOBUFS | KCOV_ENABLE fails"), "{row}");
        assert!(row.ends_with("| Linux: `AlreadyEnabled`<br>NetBSD: `NotSized` |"), "{row}");
    }

    #[test]
    fn failures_to_open_have_their_kinds() {
        for (id, kind) in [
            ("open.not-built-in-is-refused", "NotBuiltIn"),
            ("open.locked-down-is-refused", "LockedDown"),
            ("open.unprivileged-is-refused", "PermissionDenied"),
            ("faults.open-without-memory", "OutOfMemory"),
        ] {
            let row = row(id);
            assert!(row.ends_with(&format!("| `{kind}` |")), "{row}");
        }
    }

    #[test]
    fn every_kind_of_the_tables_is_documented() {
        let kinds: Vec<_> = documented_kinds().into_iter().map(|(kind, _)| kind).collect();
        for row in LINUX.rows().iter().chain(&NETBSD.rows()) {
            assert!(kinds.contains(&row.kind), "{}", row.kind);
        }
        let alone = ["DebugfsNotMounted", "NotInstrumented", "Other"];
        assert!(alone.iter().all(|kind| kinds.iter().any(|known| known == kind)), "{kinds:?}");
    }

    #[test]
    fn the_longest_beginning_decides() {
        assert_eq!(operation("remote.attach.detach-when-not-attached-is-refused"), "");
        assert_eq!(operation("remote.attach.again"), "Attach");
        assert_eq!(operation("remote.release.close-keeps-handles"), "EnableRemote");
    }
}
