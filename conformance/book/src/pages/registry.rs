//! The registries as text for pages. Errnos stay names, because their numbers differ between
//! systems.

use kcov_conformance::claims::{Claim, Claims};

/// The claims about one system.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    /// The system's name.
    pub(super) name: &'static str,
    /// The word in targets' declarations, for a single system.
    pub(super) word: &'static str,
    /// Its registries, with the names in `claims::FILES`.
    pub(super) files: &'static [&'static str],
}

pub(super) const LINUX: System = System {
    name: "Linux",
    word: "linux",
    files: &[
        "linux-document.toml",
        "linux-driver.toml",
        "linux-race-driver.toml",
        "linux-proposed-ext.toml",
        "linux-proposed-uniq.toml",
        "linux-proposed-unique.toml",
    ],
};

pub(super) const NETBSD: System = System {
    name: "NetBSD",
    word: "netbsd",
    files: &["netbsd-document.toml", "netbsd-driver.toml"],
};

/// The claims about the safe crate: on both systems, and on one only.
pub(super) const CRATE: [System; 3] = [
    System { name: "both systems", word: "", files: &["api.toml"] },
    System { name: "Linux", word: "linux", files: &["api-linux.toml"] },
    System { name: "NetBSD", word: "netbsd", files: &["api-netbsd.toml"] },
];

/// The fields of a claim that the pages need.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) source: String,
    pub(super) section: String,
    pub(super) errno: Option<String>,
    pub(super) disagrees: Option<String>,
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
    pub(super) status: String,
    pub(super) reason: Option<String>,
}

/// Replaces NetBSD's names of ioctls, to compare claims about both systems.
pub(super) fn with_linux_names(text: &str) -> String {
    [
        ("KCOV_IOC_SETBUFSIZE", "KCOV_INIT_TRACE"),
        ("KCOV_IOC_ENABLE", "KCOV_ENABLE"),
        ("KCOV_IOC_DISABLE", "KCOV_DISABLE"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (netbsd, linux)| text.replace(netbsd, linux))
}

impl System {
    /// The claims, in the order of the files.
    ///
    /// # Panics
    ///
    /// If a registry file is malformed, which the unit tests exclude.
    pub(super) fn entries(self) -> Vec<Entry> {
        let entry = |claim: &Claim| Entry {
            id: claim.id.clone(),
            text: claim.text.clone(),
            source: claim.source.clone(),
            section: claim.section.clone(),
            errno: claim.errno.map(str::to_owned),
            disagrees: claim.disagrees.clone(),
            since: claim.since.map(|version| version.to_string()),
            until: claim.until.map(|version| version.to_string()),
            status: claim.status().word().to_owned(),
            reason: claim.reason.clone(),
        };
        Claims::of_files(self.files).iter().map(entry).collect()
    }
}

impl Entry {
    /// The releases to which the claim applies, if not all.
    pub(super) fn releases(&self) -> Option<String> {
        match (&self.since, &self.until) {
            (None, None) => None,
            (Some(since), None) => Some(format!("since {since}")),
            (None, Some(until)) => Some(format!("before {until}")),
            (Some(since), Some(until)) => Some(format!("from {since} to before {until}")),
        }
    }
}
