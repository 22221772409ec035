//! The features that a target declares for its kernel, and the probes that prove them.

use crate::feature::Feature;
use crate::kernel::Version;
use crate::runner;
use std::path::Path;

/// The words for systems, which a declaration may also contain.
pub const SYSTEMS: &[&str] = &["linux", "netbsd"];

/// A target's declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The features, in the order of [`Feature::ALL`].
    pub features: Vec<Feature>,
    /// The system, if declared.
    pub system: Option<&'static str>,
}

impl Declaration {
    /// Parses comma-separated words.
    pub fn parse(words: &str) -> Result<Declaration, String> {
        let mut declaration = Declaration::default();
        let mut named = Vec::new();
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if let Some(&system) = SYSTEMS.iter().find(|&&system| system == word) {
                declaration.system = Some(system);
            } else {
                named.push(*Feature::ALL.iter().find(|f| f.word() == word).ok_or_else(|| {
                    let known: Vec<_> = Feature::ALL.iter().map(|f| f.word()).collect();
                    format!(
                        "--declare: {word:?} is no feature; the words are {}, {}",
                        SYSTEMS.join(", "),
                        known.join(", ")
                    )
                })?);
            }
        }
        declaration.features = in_order(|feature| named.contains(&feature));
        Ok(declaration)
    }

    /// Whether this feature is declared.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// The version of the kernel's interface.
    ///
    /// On NetBSD this is not the kernel's own version: 9.99 covers kernels with the interface of 9
    /// and of 10.
    pub fn interface(&self, kernel: Version) -> Version {
        let versions = [(Feature::NetBsd9, Version(9, 0)), (Feature::NetBsd10, Version(10, 0))];
        let declared = versions.into_iter().find(|(feature, _)| self.has(*feature));
        declared.map_or(kernel, |(_, version)| version)
    }

    /// The differences between the declaration and the detected features, as text.
    pub fn mismatches(&self, found: &[Feature]) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(system) = self.system.filter(|&system| system != crate::system::WORD) {
            all.push(format!("{system} declared, this is {}", crate::system::WORD));
        }
        let absent = |feature| self.has(feature) && !found.contains(&feature);
        // Without the device, only the device was probed.
        let asked: &[Feature] = if absent(Feature::Kcov) { &[Feature::Kcov] } else { Feature::ALL };
        for &feature in asked {
            match (self.has(feature), found.contains(&feature)) {
                (true, false) => all.push(format!("{feature} declared but absent")),
                (false, true) => all.push(format!("{feature} present but not declared")),
                _ => {}
            }
        }
        all
    }
}

fn in_order(wanted: impl Fn(Feature) -> bool) -> Vec<Feature> {
    Feature::ALL.iter().copied().filter(|&feature| wanted(feature)).collect()
}

/// The exit status of a probe process if the feature is absent.
const ABSENT: i32 = 3;
/// The exit status of a probe process if the answer is unclear.
const UNCLEAR: i32 = 1;

/// Probes each feature in a separate process, because a probe's effects end with its process.
/// Without the device, it probes nothing else.
pub fn probe_all(device: &Path) -> Result<Vec<Feature>, String> {
    let mut found = Vec::new();
    if !probe(Feature::Kcov, device)? {
        return Ok(found);
    }
    for &feature in Feature::ALL {
        if probe(feature, device)? {
            found.push(feature);
        }
    }
    Ok(found)
}

fn probe(feature: Feature, device: &Path) -> Result<bool, String> {
    let failed = |what: String| format!("the probe for {feature} failed: {what}");
    let outcome = runner::supervise(None, || match crate::raw::probe(feature, device) {
        Ok(true) => 0,
        Ok(false) => ABSENT,
        Err(errno) => {
            eprintln!("{errno}");
            UNCLEAR
        }
    });
    let outcome = outcome.map_err(|error| failed(error.to_string()))?;
    match outcome.status {
        Some(0) => Ok(true),
        Some(ABSENT) => Ok(false),
        _ => Err(failed(outcome.message.replace('\n', "; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_read_in_any_order() {
        let declaration = Declaration::parse("remote, linux,kcov,,").unwrap();
        assert_eq!(declaration.features, [Feature::Kcov, Feature::Remote]);
        assert_eq!(declaration.system, Some("linux"));
        assert_eq!(Declaration::parse(""), Ok(Declaration::default()));
    }

    #[test]
    fn an_unknown_word_is_named() {
        assert!(Declaration::parse("kcov,comparison").unwrap_err().contains("\"comparison\""));
    }

    #[test]
    fn mismatches_go_both_ways() {
        let declaration = Declaration::parse("kcov,remote").unwrap();
        assert_eq!(
            declaration.mismatches(&[Feature::Kcov, Feature::Comparisons]),
            ["comparisons present but not declared", "remote declared but absent"]
        );
        assert_eq!(declaration.mismatches(&[Feature::Kcov, Feature::Remote]), [""; 0]);
        assert_eq!(declaration.mismatches(&[]), ["kcov declared but absent"]);
    }

    #[test]
    fn the_system_is_compared_too() {
        let foreign = if crate::system::WORD == "linux" { "netbsd" } else { "linux" };
        assert_eq!(Declaration::parse(foreign).unwrap().mismatches(&[]).len(), 1);
    }
}
