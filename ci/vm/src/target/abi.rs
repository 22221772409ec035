//! Targets with a user's kernel. Each ABI covers a whole series of releases.

use super::{Kind, Target, Targets, is_word};
use crate::error::{Error, Result};
use serde::Deserialize;

/// The properties of one ABI.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abi {
    /// The required beginning of the release string.
    pub release: String,
    /// Words for the test program.
    pub declares: Vec<String>,
}

impl Targets {
    /// Applies the user's options: selects the ABI of targets that have some, and adds words for
    /// the user's kernels. A target with ABIs always has a user's kernel.
    pub fn adjust(&mut self, abi: Option<&str>, declares: &[String], own: bool) -> Result<()> {
        if let Some(word) = declares.iter().find(|word| !is_word(word)) {
            return Err(Error::usage(format!("--declare {word}: not a word")));
        }
        for target in &mut self.all {
            target.choose_abi(abi).map_err(Error::Usage)?;
            if !own && target.abi.is_empty() {
                continue;
            }
            for word in declares {
                if !target.declares.contains(word) {
                    target.declares.push(word.clone());
                }
            }
        }
        Ok(())
    }
}

impl Target {
    /// Takes release and words from the named ABI, or from the newest.
    pub fn choose_abi(&mut self, name: Option<&str>) -> std::result::Result<(), String> {
        if self.abi.is_empty() {
            return Ok(());
        }
        let newest = self.abi.keys().max_by_key(|name| name.parse::<u32>().ok());
        let name = name.or(newest.map(String::as_str)).unwrap_or_default();
        let Some(abi) = self.abi.get(name) else {
            let known: Vec<_> = self.abi.keys().map(String::as_str).collect();
            return Err(format!("--abi {name}: {} has {}", self.name, known.join(", ")));
        };
        self.release.clone_from(&abi.release);
        self.declares.clone_from(&abi.declares);
        Ok(())
    }

    /// Validates the keys that depend on the target's kind.
    pub(super) fn validate_origin(&self) -> std::result::Result<(), String> {
        let package = [("package", self.package.is_empty()), ("suite", self.suite.is_empty())];
        let built = [("config", self.config.is_empty()), ("release", self.release.is_empty())];
        if self.kind != Kind::Netbsd {
            return match package.iter().chain(&built).find(|(_, empty)| *empty) {
                Some((key, _)) => Err(format!("key `{key}`: is missing or empty")),
                None if !self.abi.is_empty() => {
                    Err("key `abi`: works only for netbsd targets".into())
                }
                None => Ok(()),
            };
        }
        let more = [
            ("patches", self.patches.is_empty()),
            ("make", self.make.is_empty()),
            ("declares", self.declares.is_empty()),
            ("cmdline", self.cmdline.is_empty()),
        ];
        match package.iter().chain(&built).chain(&more).find(|(_, empty)| !empty) {
            Some((key, _)) => {
                Err(format!("key `{key}`: not allowed for a netbsd target, see `abi`"))
            }
            None if self.abi.is_empty() => Err("key `abi`: a netbsd target needs one".into()),
            None => match self.abi.keys().find(|name| name.parse::<u32>().is_err()) {
                Some(name) => Err(format!("key `abi`: `{name}` is not a number")),
                None => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Targets;
    use std::path::Path;

    const GOOD: &str = r#"
        [[target]]
        name = "n"
        kind = "netbsd"
        memory = 512
        boot-limit = 60
        program-limit = 60
        default = true
        [target.abi]
        9 = { release = "9.", declares = ["nine"] }
        10 = { release = "10.", declares = ["ten"] }
    "#;

    fn parse(text: &str) -> Result<Targets, String> {
        Targets::parse(text, Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data")))
    }

    #[test]
    fn the_newest_abi_is_taken_unless_one_is_named() {
        let mut target = parse(GOOD).expect("valid").all.remove(0);
        assert_eq!((target.release.as_str(), &target.declares[..]), ("10.", &["ten".into()][..]));
        target.choose_abi(Some("9")).expect("known");
        assert_eq!((target.release.as_str(), &target.declares[..]), ("9.", &["nine".into()][..]));
        let why = target.choose_abi(Some("8")).expect_err("unknown");
        assert_eq!(why, "--abi 8: n has 10, 9");
    }

    #[test]
    fn what_is_declared_besides_comes_after_the_words_of_the_abi() {
        let mut targets = parse(GOOD).expect("valid");
        targets.adjust(Some("9"), &["more".into(), "nine".into()], false).expect("known");
        assert_eq!(targets.all[0].declares, ["nine", "more"]);
    }

    #[test]
    fn keys_of_built_kernels_are_refused() {
        for (from, to, key) in [
            ("memory", "package = \"p\"\nmemory", "package"),
            ("memory", "config = [\"common.config\"]\nmemory", "config"),
            ("memory", "release = \"9.\"\nmemory", "release"),
            ("memory", "declares = [\"x\"]\nmemory", "declares"),
            ("memory", "cmdline = \"x\"\nmemory", "cmdline"),
            ("10 =", "ten =", "abi"),
            ("[\"ten\"]", "[\"t n\"]", "declares"),
            ("\"10.\"", "\"\"", "release"),
            ("kind = \"netbsd\"", "kind = \"uml\"", "package"),
        ] {
            let message = parse(&GOOD.replacen(from, to, 1)).expect_err("must not be accepted");
            assert!(message.contains("target `n`"), "{message}");
            assert!(message.contains(&format!("`{key}`")), "{key}: {message}");
        }
        let without = &GOOD[..GOOD.find("[target.abi]").expect("it is there")];
        assert!(parse(without).expect_err("no ABI").contains("`abi`"));
    }
}
