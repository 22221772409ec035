//! Builds a kernel into the cache.

use super::key::{self, Ingredients};
use super::make::Make;
use super::{PROOF, Place, RELOCATED};
use crate::arch::Arch;
use crate::cache::{self, Cache};
use crate::error::{OrUnavailable as _, Phase, Result, Unavailable};
use crate::source::{self, Source};
use crate::target::{Kind, Target};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Builds in a scratch directory and renames the finished part into place, so
/// an incomplete build never counts. The caller holds the place's lock. The
/// output for a user's tree stays, so the next build compiles what has changed.
pub fn build(target: &Target, source: &Source, place: &Place, cache: &Cache) -> Result<()> {
    let pristine = source.tree(cache)?;
    let scratch = cache.at("kernels").join(format!(".build-{}", place.name));
    // A failed or killed build left it.
    let _ = fs::remove_dir_all(&scratch);
    let lasting = match source {
        Source::Tree(tree, _) if place.ingredients.patches.is_empty() => {
            Some(format!("tree-{}", &place.ingredients.key_in(tree)[..12]))
        }
        _ => None,
    };
    let lock = |name| cache.lock(Phase::Build, &format!("bench-{name}"));
    let _lock = lasting.as_ref().map(lock).transpose()?;
    let output = lasting.map_or(scratch.join("output"), |name| cache.at("benches").join(name));
    let finished = scratch.join("finished");
    for directory in [&output, &finished] {
        fs::create_dir_all(directory).or_unavailable(Phase::Build, directory.display())?;
    }
    cache::touch(&output);
    let built = build_in(&scratch, &output, &pristine, target, place);
    // Remove the large files. After a failure, the log and the configuration stay.
    let _ = fs::remove_dir_all(scratch.join("output"));
    let _ = fs::remove_dir_all(scratch.join("tree"));
    built?;
    // Anything there is damaged, or it would have counted as a kernel.
    let _ = fs::remove_dir_all(&place.directory);
    fs::rename(&finished, &place.directory)
        .or_unavailable(Phase::Build, place.directory.display())?;
    let _ = fs::remove_dir_all(&scratch);
    Ok(())
}

/// Builds the kernel, and copies what its directory has to hold, the proof last.
fn build_in(
    scratch: &Path,
    output: &Path,
    pristine: &Path,
    target: &Target,
    place: &Place,
) -> Result<()> {
    let ingredients = &place.ingredients;
    let finished = scratch.join("finished");
    let patched = scratch.join("tree");
    let tree = if ingredients.patches.is_empty() {
        pristine
    } else {
        source::patched(pristine, &ingredients.patches, &patched)?;
        &patched
    };
    let arguments = key::build_arguments(target);
    let make = Make {
        tree,
        output,
        log: &finished.join("build.log"),
        arguments: &arguments,
        compiler: ingredients.compiler.argument.clone(),
        mark: &place.mark,
    };
    make.configure(&ingredients.config)?;
    let copy = |from: &str, to: &str| {
        let from = output.join(from);
        fs::copy(&from, finished.join(to)).or_unavailable(Phase::Build, from.display()).map(drop)
    };
    copy(".config", "config")?;
    checked_config(&finished.join("config"), ingredients)?;
    make.build(&target.name)?;

    copy("vmlinux", "vmlinux")?;
    copy("System.map", "System.map")?;
    if relocated(output, target.arch).is_some() {
        copy(RELOCATED, RELOCATED)?;
    }
    let kernel = finished.join("kernel");
    match image(target) {
        "vmlinux" => fs::hard_link(finished.join("vmlinux"), &kernel)
            .or_unavailable(Phase::Build, kernel.display())?,
        image => copy(image, "kernel")?,
    }
    for module in &target.modules {
        copy(module, module.rsplit('/').next().unwrap_or(module))?;
    }
    fs::write(finished.join(PROOF), ingredients.text())
        .or_unavailable(Phase::Build, finished.display())
}

/// Refuses a configuration that lacks a requested option.
pub(super) fn checked_config(file: &Path, ingredients: &Ingredients) -> Result<()> {
    let got = fs::read_to_string(file).or_unavailable(Phase::Build, file.display())?;
    let missing = missing(&ingredients.config, &got);
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("the kernel's configuration lacks {}", missing.join(", "));
    Err(Unavailable::new(Phase::Build, message).logs(file).into())
}

/// The path of the kernel image in the output directory.
pub(super) fn image(target: &Target) -> &'static str {
    match target.kind {
        Kind::Uml => "vmlinux",
        Kind::Qemu => target.arch.image[1],
        Kind::Netbsd => unreachable!("it has no source"),
    }
}

/// The linked kernel with its relocations, if this version of Linux leaves one.
pub(super) fn relocated(output: &Path, arch: &Arch) -> Option<PathBuf> {
    Some(output.join(RELOCATED)).filter(|file| arch.keeps_relocations() && file.is_file())
}

/// Returns the lines of `wanted` that `got` lacks, as written.
///
/// kconfig silently drops unknown options and options with unmet dependencies.
/// A kernel without KCOV would then pass for one with it.
fn missing(wanted: &str, got: &str) -> Vec<String> {
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
