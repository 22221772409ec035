//! Builds a kernel into the cache.

use super::key::{self, Ingredients};
use super::make::Make;
use super::{DIGEST, PROOF, Place, RELOCATED, config};
use crate::arch::Arch;
use crate::cache::Cache;
use crate::error::{Error, OrUnavailable as _, Phase, Result, Unavailable};
use crate::hash;
use crate::source::{self, Source};
use crate::target::{Kind, Target};
use std::fs;
use std::path::{Path, PathBuf};

/// Builds in a scratch directory and renames the finished part into place, so
/// an incomplete build never counts. The caller holds the place's lock.
pub fn build(
    target: &Target,
    source: &Source,
    ingredients: &Ingredients,
    place: &Place,
    cache: &Cache,
    jobs: usize,
) -> Result<()> {
    let pristine = source.tree(cache)?;
    let scratch = cache.kernels().join(format!(".build-{}", place.name));
    // A failed or killed build left it.
    let _ = fs::remove_dir_all(&scratch);
    let (output, finished) = (scratch.join("output"), scratch.join("finished"));
    for directory in [&output, &finished] {
        fs::create_dir_all(directory).or_unavailable(Phase::Build, directory.display())?;
    }
    let built = build_in(&scratch, &pristine, target, ingredients, place, cache, jobs);
    // Remove the large files. After a failure, the log and the configuration
    // stay.
    let _ = fs::remove_dir_all(&output);
    let _ = fs::remove_dir_all(scratch.join("tree"));
    built?;
    // Anything there is damaged, or it would have counted as a kernel.
    let _ = fs::remove_dir_all(&place.directory);
    fs::rename(&finished, &place.directory)
        .or_unavailable(Phase::Build, place.directory.display())?;
    let _ = fs::remove_dir_all(&scratch);
    Ok(())
}

fn build_in(
    scratch: &Path,
    pristine: &Path,
    target: &Target,
    ingredients: &Ingredients,
    place: &Place,
    cache: &Cache,
    jobs: usize,
) -> Result<()> {
    let io = |error: std::io::Error| Error::unavailable(Phase::Build, error.to_string());
    let (output, finished) = (scratch.join("output"), scratch.join("finished"));
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
        output: &output,
        log: &finished.join("build.log"),
        arguments: &arguments,
        compiler: ingredients.compiler.make_argument(target, cache)?,
        mark: &place.mark,
        jobs,
    };
    make.configure(&ingredients.config)?;
    let configured = finished.join("config");
    fs::copy(output.join(".config"), &configured).map_err(io)?;
    checked_config(&configured, ingredients)?;
    make.build(&target.name, &cache.kernels().join(format!(".lines-{}", target.name)), target)?;

    collect(&output, &finished, target, ingredients)
}

/// Copies what a kernel's directory has to hold from the output directory, the proof last.
pub(super) fn collect(
    output: &Path,
    finished: &Path,
    target: &Target,
    ingredients: &Ingredients,
) -> Result<()> {
    let io = |error: std::io::Error| Error::unavailable(Phase::Build, error.to_string());
    let copy = |from: &str, to: &Path| {
        let from = output.join(from);
        fs::copy(&from, to).or_unavailable(Phase::Build, from.display()).map(drop)
    };
    let (kernel, vmlinux) = (finished.join("kernel"), finished.join("vmlinux"));
    copy("vmlinux", &vmlinux)?;
    copy("System.map", &finished.join("System.map"))?;
    if relocated(output, target.arch).is_some() {
        copy(RELOCATED, &finished.join(RELOCATED))?;
    }
    match image(target) {
        "vmlinux" => fs::hard_link(&vmlinux, &kernel).map_err(io)?,
        image => copy(image, &kernel)?,
    }
    for module in &target.modules {
        copy(module, &finished.join(Path::new(module).file_name().unwrap_or_default()))?;
    }
    let digest = hash::file(&kernel).map_err(io)?;
    fs::write(finished.join(DIGEST), digest).map_err(io)?;
    fs::write(finished.join(PROOF), ingredients.to_text()).map_err(io)
}

/// Adds a bench's unaltered kernel to the cache, unless it is there.
pub(super) fn adopt(
    output: &Path,
    log: &Path,
    target: &Target,
    ingredients: &Ingredients,
    place: &Place,
    cache: &Cache,
) -> Result<()> {
    let _lock = cache.lock(Phase::Build, &place.name)?;
    if place.directory.exists() {
        return Ok(());
    }
    let scratch = cache.kernels().join(format!(".build-{}", place.name));
    let _ = fs::remove_dir_all(&scratch);
    let copied = fs::create_dir_all(&scratch)
        .and_then(|()| fs::copy(output.join(".config"), scratch.join("config")))
        .and_then(|_| fs::copy(log, scratch.join("build.log")));
    copied.or_unavailable(Phase::Build, scratch.display())?;
    collect(output, &scratch, target, ingredients)?;
    fs::rename(&scratch, &place.directory).or_unavailable(Phase::Build, place.directory.display())
}

/// Refuses a configuration that lacks a requested option.
pub(super) fn checked_config(file: &Path, ingredients: &Ingredients) -> Result<()> {
    let got = fs::read_to_string(file).or_unavailable(Phase::Build, file.display())?;
    let missing = config::missing(&ingredients.config, &got);
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
