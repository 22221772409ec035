//! Checks that the configuration has every requested option.

use std::collections::BTreeMap;

/// Returns the lines of `wanted` that `got` lacks, as written.
///
/// kconfig silently drops unknown options and options with unmet dependencies.
/// A kernel without KCOV would then pass for one with it.
pub fn missing(wanted: &str, got: &str) -> Vec<String> {
    let got = settings(got);
    settings(wanted)
        .into_iter()
        .filter(|(name, value)| {
            let found = got.get(name).copied().unwrap_or("n");
            found != *value
        })
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Parses names and values. The last line for a name counts, as in kconfig.
fn settings(text: &str) -> BTreeMap<&str, &str> {
    let mut settings = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        let unset = line.strip_prefix("# ").and_then(|line| line.strip_suffix(" is not set"));
        if let Some(name) = unset.filter(|name| name.starts_with("CONFIG_")) {
            settings.insert(name, "n");
        } else if line.starts_with("CONFIG_") {
            if let Some((name, value)) = line.split_once('=') {
                settings.insert(name, value);
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kconfig_dropped_is_named() {
        let wanted = "# why\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_C=n\nCONFIG_D=\"x y\"\n\
                      CONFIG_E=y\n# CONFIG_E is not set\nCONFIG_F=y\n";
        let got = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D=\"x y\"\n";
        assert_eq!(missing(wanted, got), ["CONFIG_B=y", "CONFIG_F=y"]);
        assert!(missing("", got).is_empty());
        assert_eq!(missing("# CONFIG_A is not set", got), ["CONFIG_A=n"]);
    }
}
