//! The registry of claims: promises of documents and drivers, in our words.

use crate::errno::Name;
use crate::feature::Feature;
use crate::kernel::Version;
use serde::{Deserialize, Serialize};

/// The kind of source of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Authority {
    /// The kernel's documentation or manual.
    #[default]
    Document,
    /// The driver, its header, or the code around it.
    Driver,
    /// A message that proposes a change to the kernel.
    Message,
    /// The documentation of the safe crate.
    Crate,
}

/// The status of a claim. The claim's fields say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A check with the same id proves it.
    Checked,
    /// It promises nothing that a program could observe.
    Informative,
    /// No program can observe it reliably.
    Untestable,
}

impl Status {
    /// The word for it in lists.
    pub fn word(self) -> &'static str {
        match self {
            Status::Checked => "checked",
            Status::Informative => "informative",
            Status::Untestable => "untestable",
        }
    }
}

/// One claim.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Lower case, with dots from the general to the specific, without the system's name.
    pub id: String,
    /// The claim: one sentence in our words.
    pub text: String,
    /// The kind of source, the same for all claims of a file.
    #[serde(skip_deserializing)]
    pub authority: Authority,
    /// The place in the source: section and locator, after the source if it is not the file's.
    #[serde(skip_serializing)]
    at: Vec<String>,
    /// The file in the system's source tree, or the subject of a message.
    #[serde(skip_deserializing)]
    pub source: String,
    /// The heading in the document, or the function of the driver.
    #[serde(skip_deserializing)]
    pub section: String,
    /// A short quote from that file that finds the place again.
    #[serde(skip_deserializing)]
    pub locator: String,
    /// The quotes in other releases.
    #[serde(default)]
    pub formerly: Vec<String>,
    /// The name of the errno of the refusal, which is the first that the text names. Its number
    /// depends on the system.
    #[serde(skip_deserializing)]
    pub errno: Option<Name>,
    /// Features that the check needs, in addition to those that nearly all checks need.
    #[serde(default)]
    pub needs: Vec<Feature>,
    /// Features that must be absent for the check.
    #[serde(default)]
    pub without: Vec<Feature>,
    /// The first kernel with the claimed behaviour.
    pub since: Option<Version>,
    /// The first kernel without it.
    pub until: Option<Version>,
    /// The kernel's behaviour, if it differs from the source.
    pub disagrees: Option<String>,
    /// Why there is no check. Without a reason, a check with the same id proves the claim.
    pub reason: Option<String>,
    /// The obstacle to a check, which makes the claim untestable. Without one, a claim with a
    /// reason is informative.
    pub missing: Option<String>,
}

impl Claim {
    /// Whether there is a check.
    pub fn status(&self) -> Status {
        match (&self.missing, &self.reason) {
            (Some(_), _) => Status::Untestable,
            (None, Some(_)) => Status::Informative,
            (None, None) => Status::Checked,
        }
    }

    /// All features that the check needs.
    ///
    /// A check needs the device and instrumented code, unless it tests their absence.
    pub fn needed(&self) -> impl Iterator<Item = Feature> {
        let lacks = |feature| self.without.contains(&feature);
        let device = !lacks(Feature::Kcov);
        let records = device && !lacks(Feature::Instrumented);
        let implied = [(Feature::Kcov, device), (Feature::Instrumented, records)];
        let implied = implied.into_iter().filter(|(_, needed)| *needed).map(|(feature, _)| feature);
        implied.chain(self.needs.iter().copied())
    }

    /// Why the claim does not apply to a kernel with this version of the interface, if it does not.
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
    pub fn place(&self) -> String {
        format!("{} ({})", self.source, self.section)
    }
}

/// The first errno that a text names.
fn errno_in(text: &str) -> Option<Name> {
    let all = [kcov_sys::errno::linux::ALL, kcov_sys::errno::netbsd::ALL];
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.find_map(|word| all.into_iter().flatten().map(|entry| entry.0).find(|name| *name == word))
}

/// The registries of all systems, by file name. The name of a file about one system contains its
/// word.
pub const FILES: &[(&str, &str)] = &[
    ("linux-document.toml", include_str!("../claims/linux-document.toml")),
    ("linux-driver.toml", include_str!("../claims/linux-driver.toml")),
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
    pub fn of_system() -> Claims {
        Claims::of(crate::system::WORD)
    }

    /// The claims about any system.
    pub fn of(system: &str) -> Claims {
        Claims::of_files(|file| file == "api.toml" || file.contains(system))
    }

    /// The claims of the files with these names.
    pub fn of_files(wanted: impl Fn(&str) -> bool) -> Claims {
        let files = FILES.iter().filter(|(file, _)| wanted(file));
        Claims(files.flat_map(|(file, text)| parse(file, text)).collect())
    }

    /// The claim with this id.
    pub fn get(&self, id: &str) -> Option<&Claim> {
        self.0.iter().find(|claim| claim.id == id)
    }

    /// The claim that the check with this id proves.
    pub fn of_check(&self, id: &str) -> &Claim {
        self.get(id).expect("every check has its claim")
    }

    /// All claims, in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.0.iter()
    }
}

/// The claims of a registry file.
pub fn parse(file: &str, text: &str) -> Vec<Claim> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Registry {
        authority: Authority,
        source: String,
        claim: Vec<Claim>,
    }
    let Registry { authority, source, mut claim } =
        toml::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    for claim in &mut claim {
        claim.authority = authority;
        claim.errno = errno_in(&claim.text);
        let at = std::mem::take(&mut claim.at);
        let [of, section, locator] = match at.as_slice() {
            [section, locator] => [&source, section, locator],
            [of, section, locator] => [of, section, locator],
            _ => panic!("{file}: {}: `at` has a section and a locator", claim.id),
        };
        (claim.source, claim.section, claim.locator) =
            (of.clone(), section.clone(), locator.clone());
    }
    claim
}

#[cfg(test)]
mod tests;
