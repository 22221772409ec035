//! The error conditions with their errnos, and the safe crate's kinds for them.

use super::registry::{self, Entry, with_linux_names};
use super::{MARK, WRITING, link, plain};
use kcov_conformance::errno::Errno;
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
    source: String,
}

impl Table {
    /// # Panics
    ///
    /// If the file does not have the format of the test in `kcov/src/error.rs`.
    fn rows(&self) -> Vec<Meaning> {
        let body = self.text.splitn(3, "---\n").nth(2).expect("a snapshot");
        let lines: Vec<&str> = body.lines().collect();
        let row = |three: &[&str]| {
            let [head, message, source] = *three else { panic!("{three:?}: not three lines") };
            let words: Vec<&str> = head.split(' ').collect();
            let [operation, number, kind] = *words else { panic!("{head:?}: not three words") };
            Meaning {
                operation: operation.to_owned(),
                errno: self.errno(number.parse().expect("a number")),
                kind: kind.to_owned(),
                help: message.split_once("; ").map_or("", |(_, help)| help).to_owned(),
                source: source.trim().trim_start_matches("from ").to_owned(),
            }
        };
        lines.chunks(3).map(row).collect()
    }

    /// The name of a number. Up to 34 all Unix systems agree; others do not match the host's on
    /// both systems.
    fn errno(&self, number: i32) -> String {
        let name = match (number, self.system) {
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

/// The claims under a heading, by prefix of their ids, and the safe crate's name of the operation
/// that fails. The longest prefix wins.
struct Group {
    title: &'static str,
    operation: Option<&'static str>,
    of: &'static [&'static str],
}

/// The other claims about `open.` concern calls on the open device.
const OPEN: &[&str] =
    &["open.unprivileged", "open.not-built-in", "open.locked-down", "faults.open-without-memory"];

const GROUPS: &[Group] = &[
    Group { title: "Open", operation: Some("Open"), of: OPEN },
    Group { title: "Read, write and other calls", operation: None, of: &["open.", "truncate."] },
    Group { title: "Set the size", operation: Some("SetSize"), of: &["size."] },
    Group { title: "Map", operation: Some("Map"), of: &["map."] },
    Group { title: "Lack of memory", operation: None, of: &["faults."] },
    Group { title: "Unknown ioctls", operation: None, of: &["request."] },
    Group {
        title: "Enable",
        operation: Some("Enable"),
        of: &["enable.", "close.while-enabled-keeps-the-thread-busy", "fork.", "exec."],
    },
    Group {
        title: "Disable",
        operation: Some("Disable"),
        of: &["disable.", "close.while-enabled-nobody-can-disable"],
    },
    Group { title: "Attach", operation: Some("Attach"), of: &["remote.attach."] },
    Group { title: "Detach", operation: None, of: &["remote.attach.detach-"] },
    Group {
        title: "Enable remote coverage",
        operation: Some("EnableRemote"),
        of: &["remote.", "remote.release.close-keeps-handles"],
    },
    Group {
        title: "Disable remote coverage",
        operation: Some("DisableRemote"),
        of: &["remote.release.", "remote.not-enabled-disable-"],
    },
];

/// The group of a claim, by the longest prefix.
fn group(id: &str) -> &'static str {
    let length = |group: &Group| {
        group.of.iter().filter(|of| id.starts_with(**of)).map(|of| of.len()).max().unwrap_or(0)
    };
    let best = GROUPS.iter().max_by_key(|group| length(group)).filter(|group| length(group) > 0);
    best.unwrap_or_else(|| panic!("{id}: an error of no operation; add it to GROUPS")).title
}

/// The table of conditions: condition, errnos, kind.
pub(super) fn conditions() -> String {
    let of = |system: registry::System| -> Vec<Entry> {
        system.entries().into_iter().filter(|entry| entry.errno.is_some()).collect()
    };
    let (linux, netbsd) = (of(registry::LINUX), of(registry::NETBSD));
    let (ours, theirs) = (LINUX.rows(), NETBSD.rows());
    let mut page = String::from(MARK);
    for Group { title, operation, .. } in GROUPS {
        writeln!(page, "## {title}\n\n| Condition | Linux | NetBSD | Kind |\n|---|---|---|---|")
            .expect(WRITING);
        let here = |entry: &&Entry| group(&entry.id) == *title;
        let both = linux
            .iter()
            .filter(here)
            .map(|entry| (Some(entry), netbsd.iter().find(|other| other.id == entry.id)));
        let only = |entry: &&Entry| !linux.iter().any(|other| other.id == entry.id);
        let rest = netbsd.iter().filter(here).filter(only).map(|entry| (None, Some(entry)));
        for (on_linux, on_netbsd) in both.chain(rest) {
            let (known, page_of) = match (on_linux, on_netbsd) {
                (Some(entry), _) => (entry, "linux"),
                (None, Some(entry)) => (entry, "netbsd"),
                (None, None) => unreachable!("a row has an entry"),
            };
            let condition = match (on_linux, on_netbsd) {
                (Some(one), Some(other)) => condition(one, other),
                _ => plain(&known.text),
            };
            writeln!(
                page,
                "| {condition}<br>{} | {} | {} | {} |",
                link(page_of, &known.id),
                errno(on_linux),
                errno(on_netbsd),
                kinds(*operation, [(on_linux, &ours), (on_netbsd, &theirs)]),
            )
            .expect(WRITING);
        }
        page.push('\n');
    }
    page
}

/// The text of both claims, or one text if they differ in the ioctl's name and the errno only.
fn condition(linux: &Entry, netbsd: &Entry) -> String {
    let [one, other] = [linux, netbsd].map(|entry| {
        let errno = entry.errno.as_deref().unwrap_or_default();
        with_linux_names(&entry.text).replace(&format!("returns {errno}"), "fails")
    });
    if one == other {
        plain(&one)
    } else {
        format!("Linux: {}<br>NetBSD: {}", plain(&linux.text), plain(&netbsd.text))
    }
}

fn errno(entry: Option<&Entry>) -> String {
    let Some(entry) = entry else { return String::new() };
    let name = entry.errno.as_deref().unwrap_or_default();
    match entry.releases() {
        Some(releases) => format!("{name}<br>{releases}"),
        None => name.to_owned(),
    }
}

/// The safe crate's kind, for each system if they differ.
fn kinds(operation: Option<&str>, sides: [(Option<&Entry>, &Vec<Meaning>); 2]) -> String {
    let kind = |(entry, table): (Option<&Entry>, &Vec<Meaning>)| {
        let errno = entry?.errno.as_deref()?;
        // On Linux the same ioctl disables local and remote coverage.
        let is = |of: &str| {
            operation == Some(of) || (operation, of) == (Some("DisableRemote"), "Disable")
        };
        let row = |row: &&Meaning| is(&row.operation) && row.errno == errno;
        Some(table.iter().rfind(row).map_or("–".to_owned(), |row| format!("`{}`", row.kind)))
    };
    match sides.map(kind) {
        [Some(one), Some(other)] if one != other => format!("Linux: {one}<br>NetBSD: {other}"),
        [Some(one), _] | [None, Some(one)] => one,
        [None, None] => String::new(),
    }
}

/// The safe crate's tables: operation, errno, kind, help, source.
pub(super) fn meanings() -> String {
    let mut page = String::from(MARK);
    for table in [LINUX, NETBSD] {
        writeln!(
            page,
            "### {}\n\n| Operation | Errno | Kind | Remedy | Source |\n|---|---|---|---|---|",
            table.system
        )
        .expect(WRITING);
        for Meaning { operation, errno, kind, help, source } in table.rows() {
            writeln!(
                page,
                "| `{operation}` | {errno} | `{kind}` | {} | {} |",
                plain(&help),
                plain(&source)
            )
            .expect(WRITING);
        }
        page.push('\n');
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_both_systems_is_one_row() {
        let page = conditions();
        let row = page.lines().find(|line| line.contains("[`enable.before-sizing-is-refused`]"));
        let row = row.expect("a claim of both systems");
        assert!(
            row.ends_with("| EINVAL | ENOBUFS | Linux: `AlreadyEnabled`<br>NetBSD: `NotSized` |"),
            "{row}"
        );
    }

    #[test]
    fn every_error_of_the_registries_has_its_row() {
        let page = conditions();
        for system in [registry::LINUX, registry::NETBSD] {
            for entry in system.entries().iter().filter(|entry| entry.errno.is_some()) {
                assert_eq!(page.matches(&format!("[`{}`]", entry.id)).count(), 1, "{}", entry.id);
            }
        }
    }

    #[test]
    fn the_longest_beginning_decides() {
        assert_eq!(group("remote.attach.detach-when-not-attached-is-refused"), "Detach");
        assert_eq!(group("remote.attach.again"), "Attach");
        assert_eq!(group("remote.release.close-keeps-handles"), "Enable remote coverage");
    }
}
