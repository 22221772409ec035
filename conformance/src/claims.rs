//! The registry of claims: what documents and drivers promise, in our words.

use crate::errno::Errno;
use crate::kernel::Version;
use serde::{Deserialize, Deserializer};

/// Who makes a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Authority {
    /// The kernel's documentation or manual.
    Document,
    /// A header of the interface.
    Header,
    /// The code of the driver or of what lies around it.
    Driver,
    /// A message that proposes what no released kernel has.
    Message,
    /// The documentation of the safe crate.
    Crate,
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A check of the same id proves it.
    Checked,
    /// A check could prove it and does not exist yet.
    Unchecked,
    /// It promises nothing that a program could observe.
    Informative,
    /// It promises something that no program can observe reliably.
    Untestable,
}

/// What it would take to check a claim that is untestable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// A machine that no guest is.
    Hardware,
    /// A guest of its own, or a kernel that no target builds.
    Guest,
    /// An argument that the interface has no room for.
    Argument,
    /// Something that happens at one moment, which nothing can choose.
    Timing,
    /// A state of the device that nothing leads to while a program runs.
    State,
    /// A way to see the effect from a program.
    View,
    /// A kernel that survives it without a complaint.
    Survivor,
}

/// One claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Lower case, dots from the general to the specific, the system left out.
    pub id: String,
    /// The claim in our words.
    pub text: String,
    /// Who makes it.
    pub authority: Authority,
    /// The file, in the system's source tree; for a message its subject.
    pub source: String,
    /// Heading of the document, or function of the driver.
    pub section: String,
    /// Words that stand in that file, by which the place is found again.
    pub locator: String,
    /// Words that stand in its stead in other releases.
    #[serde(default)]
    pub formerly: Vec<String>,
    /// The error that a refusal gives.
    #[serde(default, deserialize_with = "errno_by_name")]
    pub errno: Option<Errno>,
    /// First kernel that the claim is made for.
    pub since: Option<Version>,
    /// First kernel that the claim is not made for any more.
    pub until: Option<Version>,
    /// What the kernel does instead, where the source and the kernel disagree.
    pub disagrees: Option<String>,
    /// What becomes of it.
    pub status: Status,
    /// Why there is no check.
    pub reason: Option<String>,
    /// What an untestable claim lacks.
    pub missing: Option<Missing>,
}

impl Claim {
    /// Why nothing can be said about this claim on a kernel with the interface of that version,
    /// if so.
    #[must_use]
    pub fn excludes(&self, running: Version) -> Option<String> {
        if let Some(since) = self.since.filter(|&since| running < since) {
            return Some(format!("claimed since {since}, the interface is that of {running}"));
        }
        let until = self.until.filter(|&until| running >= until)?;
        Some(format!("claimed before {until} only, the interface is that of {running}"))
    }

    /// The words of all releases by which the place is found.
    pub fn locators(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.locator).chain(&self.formerly).map(String::as_str)
    }

    /// File and section, as one phrase.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{} ({})", self.source, self.section)
    }
}

fn errno_by_name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Errno>, D::Error> {
    let name = String::deserialize(from)?;
    match Errno::by_name(&name) {
        Some(errno) => Ok(Some(errno)),
        None => Err(serde::de::Error::custom(format!("no errno is named {name:?}"))),
    }
}

/// The registries of all systems, by file name. Those of one system have its word in their names.
pub const FILES: &[(&str, &str)] = &[
    ("linux-document.toml", include_str!("../claims/linux-document.toml")),
    ("linux-driver.toml", include_str!("../claims/linux-driver.toml")),
    ("linux-race-driver.toml", include_str!("../claims/linux-race-driver.toml")),
    ("linux-proposed-ext.toml", include_str!("../claims/linux-proposed-ext.toml")),
    ("linux-proposed-uniq.toml", include_str!("../claims/linux-proposed-uniq.toml")),
    ("linux-proposed-unique.toml", include_str!("../claims/linux-proposed-unique.toml")),
    ("netbsd-document.toml", include_str!("../claims/netbsd-document.toml")),
    ("netbsd-driver.toml", include_str!("../claims/netbsd-driver.toml")),
    ("api.toml", include_str!("../claims/api.toml")),
    ("api-linux.toml", include_str!("../claims/api-linux.toml")),
    ("api-netbsd.toml", include_str!("../claims/api-netbsd.toml")),
];

/// All claims about one system.
#[derive(Debug)]
pub struct Claims(Vec<Claim>);

impl Claims {
    /// The claims about the system that this program is compiled for.
    ///
    /// # Panics
    ///
    /// If a registry file is malformed, which the unit tests exclude.
    #[must_use]
    pub fn of_system() -> Claims {
        Claims::of(crate::system::WORD)
    }

    /// The claims about the system of that word, which need not be this one. The numbers of their
    /// errors are this system's: go by the names.
    ///
    /// # Panics
    ///
    /// If a registry file is malformed, which the unit tests exclude.
    #[must_use]
    pub fn of(system: &str) -> Claims {
        let files = FILES.iter().filter(|(file, _)| *file == "api.toml" || file.contains(system));
        Claims(files.flat_map(|(file, text)| parse(file, text)).collect())
    }

    /// The claim of that id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Claim> {
        self.0.iter().find(|claim| claim.id == id)
    }

    /// In the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.0.iter()
    }
}

pub(crate) fn parse(file: &str, text: &str) -> Vec<Claim> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Registry {
        claim: Vec<Claim>,
    }
    match toml::from_str::<Registry>(text) {
        Ok(registry) => registry.claim,
        Err(error) => panic!("{file}: {error}"),
    }
}

#[cfg(test)]
mod tests;
