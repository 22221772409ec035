//! Claims as data for templates, and where each of them stands in the reference.

use kcov_conformance::claims::{Claim, Claims, Status};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The claims about one system, or about the safe crate.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    /// The system's name.
    pub(super) name: &'static str,
    /// The word in targets' declarations, for a single system.
    pub(super) word: &'static str,
    /// The beginning of the names of its registries.
    files: &'static str,
}

pub(super) const LINUX: System = System { name: "Linux", word: "linux", files: "linux-" };

pub(super) const NETBSD: System = System { name: "NetBSD", word: "netbsd", files: "netbsd-" };

/// The claims about the safe crate: on both systems, and on one only. An id can differ in meaning
/// between the systems, so the anchors of claims about one system start with its word.
pub(super) const CRATE: [System; 3] = [
    System { name: "both systems", word: "", files: "api." },
    System { name: "Linux", word: "linux", files: "api-linux." },
    System { name: "NetBSD", word: "netbsd", files: "api-netbsd." },
];

impl System {
    /// The claims, in the order of the files.
    pub(super) fn claims(self) -> Claims {
        Claims::of_files(|file| file.starts_with(self.files))
    }
}

/// The pages about requests, calls and topics, in the order of the navigation.
#[derive(Deserialize)]
pub(super) struct Reference {
    pub(super) page: Vec<Page>,
    /// The safe crate's operations, by beginnings of ids.
    operations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) file: String,
    pub(super) title: String,
    /// What the request does, as Markdown. Each system's request is a section.
    pub(super) about: String,
    /// Names of the safe crate's operations.
    pub(super) operations: Vec<String>,
    /// Beginnings of ids.
    claims: Vec<String>,
}

pub(super) static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    toml::from_str(include_str!("../../templates/reference.toml")).expect("reference.toml")
});

/// The page of a claim.
pub(super) fn page_of(id: &str) -> &'static Page {
    let beginnings =
        REFERENCE.page.iter().flat_map(|page| page.claims.iter().map(move |b| (b, page)));
    let best = beginnings.filter(|(b, _)| id.starts_with(*b)).max_by_key(|(b, _)| b.len());
    best.unwrap_or_else(|| panic!("{id}: on no page; add its beginning to reference.toml")).1
}

/// The safe crate's operation that fails, or an empty name.
pub(super) fn operation(id: &str) -> &'static str {
    let fitting = REFERENCE.operations.iter().filter(|(b, _)| id.starts_with(*b));
    fitting.max_by_key(|(b, _)| b.len()).map_or("", |(_, operation)| operation)
}

/// Replaces NetBSD's names of ioctls, to compare claims about both systems.
fn common_names(text: &str) -> String {
    let netbsd = ["KCOV_IOC_SETBUFSIZE", "KCOV_IOC_ENABLE", "KCOV_IOC_DISABLE"];
    let linux = ["KCOV_INIT_TRACE", "KCOV_ENABLE", "KCOV_DISABLE"];
    netbsd.iter().zip(linux).fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The releases to which the claim applies, if not all.
pub(super) fn releases(claim: &Claim) -> Option<String> {
    match (claim.since, claim.until) {
        (None, None) => None,
        (Some(since), None) => Some(format!("since {since}")),
        (None, Some(until)) => Some(format!("before {until}")),
        (Some(since), Some(until)) => Some(format!("from {since} to before {until}")),
    }
}

/// A claim with what templates show of it.
pub(super) fn entry(claim: &Claim) -> Value {
    let mut entry = serde_json::to_value(claim).expect("a claim is data");
    let names = common_names(&claim.text);
    // The columns of a table of errors say the errno.
    let refusal = format!("returns {}", claim.errno.unwrap_or_default());
    entry["condition"] = names.replace(&refusal, "fails").into();
    entry["common_names"] = names.into();
    entry["status"] = claim.status().word().into();
    entry["releases"] = releases(claim).into();
    entry["page"] = Value::Null;
    if !claim.id.starts_with("api.") {
        let Page { title, file, .. } = page_of(&claim.id);
        entry["page"] = json!({ "title": title, "file": file });
    }
    entry
}

/// The claims with one id: about one system, or both.
pub(super) struct Both {
    pub(super) id: String,
    /// About Linux, and about NetBSD.
    pub(super) sides: [Option<Claim>; 2],
}

/// All claims in Linux's order, then those about NetBSD alone.
pub(super) fn of_both_systems() -> Vec<Both> {
    let (linux, netbsd) = (LINUX.claims(), NETBSD.claims());
    let both = |claim: &Claim| Both {
        id: claim.id.clone(),
        sides: [&linux, &netbsd].map(|of| of.get(&claim.id).cloned()),
    };
    let only = netbsd.iter().filter(|claim| linux.get(&claim.id).is_none());
    linux.iter().chain(only).map(both).collect()
}

impl Both {
    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sides.iter().flatten()
    }

    pub(super) fn is_an_error(&self) -> bool {
        self.claims().any(|claim| claim.errno.is_some())
    }

    pub(super) fn is_observable(&self) -> bool {
        self.claims().any(|claim| claim.status() != Status::Informative)
    }

    /// The title over it: the systems are alike, differ, or there is only one of them. They are alike
    /// if only the ioctl's name differs.
    fn part(&self) -> usize {
        match &self.sides {
            [Some(linux), Some(netbsd)] => {
                let rest = |claim: &Claim| (claim.errno, claim.disagrees.clone(), releases(claim));
                let same = common_names(&netbsd.text) == linux.text;
                usize::from(!(same && rest(linux) == rest(netbsd)))
            }
            [Some(_), None] => 2,
            [None, _] => 3,
        }
    }

    pub(super) fn value(&self) -> Value {
        let [linux, netbsd] = self.sides.each_ref().map(|claim| claim.as_ref().map(entry));
        let sides: Vec<_> = self.claims().map(entry).collect();
        json!({ "id": self.id, "linux": linux, "netbsd": netbsd, "sides": sides, "part": self.part() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_longest_beginning_decides() {
        assert_eq!(page_of("remote.not-enabled-disable-is-refused").file, "disable.md");
        assert_eq!(page_of("remote.release.close-keeps-handles").file, "processes.md");
        assert_eq!(page_of("remote.attach.again").file, "remote-enable.md");
        assert_eq!(operation("remote.attach.detach-when-not-attached-is-refused"), "");
        assert_eq!(operation("remote.attach.again"), "Attach");
        assert_eq!(operation("remote.release.close-keeps-handles"), "EnableRemote");
    }

    #[test]
    fn titles_differ() {
        let titles: BTreeSet<_> = REFERENCE.page.iter().map(|page| &page.title).collect();
        assert_eq!(titles.len(), REFERENCE.page.len());
    }
}
