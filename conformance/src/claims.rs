//! The registry of claims: promises of documents and drivers, in our words.

use crate::errno::Errno;
use crate::kernel::Version;
use serde::{Deserialize, Deserializer};

/// The source of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Authority {
    /// The kernel's documentation or manual.
    Document,
    /// A header of the driver.
    Header,
    /// The driver or the code around it.
    Driver,
    /// A message that proposes a change to the kernel.
    Message,
    /// The documentation of the safe crate.
    Crate,
}

/// The status of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A check with the same id proves it.
    Checked,
    /// A check is possible but missing.
    Unchecked,
    /// It promises nothing that a program could observe.
    Informative,
    /// No program can observe it reliably.
    Untestable,
}

/// The reason why a claim is untestable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// It needs hardware that no guest has.
    Hardware,
    /// It needs a separate guest, or a kernel that no target builds.
    Guest,
    /// It needs an argument that does not fit the interface.
    Argument,
    /// It needs an event at a moment that nothing can choose.
    Timing,
    /// It needs a state of the device that does not occur while a program runs.
    State,
    /// A program cannot see the effect.
    View,
    /// No kernel survives it without a complaint.
    Survivor,
}

/// One claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Lower case, with dots from the general to the specific, without the system's name.
    pub id: String,
    /// The claim: one sentence in our words.
    pub text: String,
    /// The kind of source.
    pub authority: Authority,
    /// The file in the system's source tree, or the subject of a message.
    pub source: String,
    /// The heading in the document, or the function of the driver.
    pub section: String,
    /// A short quote from that file that finds the place again.
    pub locator: String,
    /// The quotes in other releases.
    #[serde(default)]
    pub formerly: Vec<String>,
    /// The errno of the refusal.
    #[serde(default, deserialize_with = "errno_by_name")]
    pub errno: Option<Errno>,
    /// The first kernel with the claimed behaviour.
    pub since: Option<Version>,
    /// The first kernel without it.
    pub until: Option<Version>,
    /// The kernel's behaviour, if it differs from the source.
    pub disagrees: Option<String>,
    /// Whether there is a check.
    pub status: Status,
    /// Why there is no check.
    pub reason: Option<String>,
    /// The obstacle to a check, for an untestable claim.
    pub missing: Option<Missing>,
}

impl Claim {
    /// Why the claim does not apply to a kernel with this version of the interface, if it does not.
    #[must_use]
    pub fn excludes(&self, running: Version) -> Option<String> {
        if let Some(since) = self.since.filter(|&since| running < since) {
            return Some(format!("claimed since {since}, the interface is that of {running}"));
        }
        let until = self.until.filter(|&until| running >= until)?;
        Some(format!("claimed before {until} only, the interface is that of {running}"))
    }

    /// The locators of all releases.
    pub fn locators(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.locator).chain(&self.formerly).map(String::as_str)
    }

    /// The file and section.
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

/// The registries of all systems, by file name. The name of a file about one system contains its
/// word.
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
    /// The claims about the system for which this program is compiled.
    ///
    /// # Panics
    ///
    /// If a registry file is malformed, which the unit tests exclude.
    #[must_use]
    pub fn of_system() -> Claims {
        Claims::of(crate::system::WORD)
    }

    /// The claims about any system. Their errno numbers are those of the running system, so use the
    /// names.
    ///
    /// # Panics
    ///
    /// If a registry file is malformed, which the unit tests exclude.
    #[must_use]
    pub fn of(system: &str) -> Claims {
        let files = FILES.iter().filter(|(file, _)| *file == "api.toml" || file.contains(system));
        Claims(files.flat_map(|(file, text)| parse(file, text)).collect())
    }

    /// The claim with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Claim> {
        self.0.iter().find(|claim| claim.id == id)
    }

    /// All claims, in the order of the files.
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
