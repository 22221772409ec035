//! The programs that run in guests.

use crate::arch::Arch;
use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::home::Home;
use crate::netbsd::{self, Libraries};
use crate::run::{command, locate, read};
use crate::system::System;
use crate::target::{Target, Targets};
use crate::toolchain::{Recipe, target_directory};
use kcov_vm_guest::sources::{MANIFEST, SOURCES};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::env::current_exe;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Builds or finds each program at most once, in the thread that asks first.
#[derive(Debug)]
pub struct Programs {
    known: Mutex<HashMap<(String, String), PathBuf>>,
    /// The user's libraries for NetBSD.
    pub netbsd: Option<Libraries>,
    /// Where programs come from.
    pub home: Home,
    cache: Cache,
    /// The suite's name.
    pub suite: String,
    tracer: String,
}

impl Programs {
    /// The programs that the targets name.
    pub fn new(home: &Home, targets: &Targets, cache: &Cache, netbsd: Option<Libraries>) -> Self {
        let Targets { suite, tracer, .. } = targets.clone();
        Self {
            known: Mutex::default(),
            netbsd,
            home: home.clone(),
            cache: cache.clone(),
            suite,
            tracer,
        }
    }

    /// Returns the guests' init.
    pub fn init(&self, target: &Target) -> Result<PathBuf> {
        let triple = match target.kind.system() {
            System::Linux => target.arch.triple,
            System::NetBsd => netbsd::TRIPLE,
        };
        let make = || init(&self.recipe(triple)?, self.home.workspace.as_deref(), &self.cache);
        self.once(INIT, triple, make)
    }

    /// Returns the test suite for this triple.
    pub fn suite_for(&self, triple: &str) -> Result<PathBuf> {
        self.once(&self.suite, triple, || self.own(&self.suite, triple))
    }

    /// Returns the program that traces commands, for guests and this host.
    pub fn tracer(&self) -> Result<PathBuf> {
        let triple = Arch::host().triple;
        self.once(&self.tracer, triple, || self.own(&self.tracer, triple))
    }

    /// Returns the suite's ids for a system.
    pub fn checks(&self, system: System) -> Result<Vec<String>> {
        let suite = self.suite_for(Arch::host().triple)?;
        let list = read(command(suite).args(["list", "--system", &system.word()]))
            .map_err(|why| Error::unavailable(Phase::Image, why))?;
        Ok(list.lines().filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect())
    }

    /// Returns the suite's plan for a kernel with these declared words and this release.
    pub fn plan(&self, declares: &[String], release: &str) -> Result<String> {
        let words = ["plan", "--release", release, "--declare", &declares.join(",")];
        read(command(self.suite_for(Arch::host().triple)?).args(words))
            .map_err(|why| Error::unavailable(Phase::Verdict, why))
    }

    /// Builds the suite in a copy of the workspace.
    pub fn suite_of(&self, copy: &Path, triple: &str) -> Result<PathBuf> {
        self.recipe(triple)?.build(copy, [&self.suite; 2], &copy.join("target"))
    }

    fn recipe(&self, triple: &str) -> Result<Recipe> {
        match &self.netbsd {
            Some(libraries) if triple == netbsd::TRIPLE => libraries.recipe(),
            _ => Recipe::linux(triple),
        }
    }

    /// Returns a program of the workspace, or else an installed one.
    fn own(&self, name: &str, triple: &str) -> Result<PathBuf> {
        match &self.home.workspace {
            _ if name.is_empty() => {
                let why = "the list of targets names no such program; name one with --program";
                Err(Error::unavailable(Phase::Targets, why))
            }
            Some(workspace) => {
                self.recipe(triple)?.build(workspace, [name; 2], &target_directory(workspace))
            }
            None if triple == Arch::host().triple => installed(name),
            None => Err(Error::unavailable(
                Phase::Image,
                format!("there is no installed {name} for {triple}; name a program with --program"),
            )),
        }
    }

    fn once(
        &self,
        name: &str,
        triple: &str,
        make: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<PathBuf> {
        // A thread that panicked while building has left the list unchanged.
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match all.entry((name.into(), triple.into())) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(make()?).clone(),
        })
    }
}

/// Finds a program beside this one, or in `PATH`.
fn installed(name: &str) -> Result<PathBuf> {
    let beside = current_exe().ok().map(|own| own.with_file_name(name));
    beside.filter(|path| path.is_file()).or_else(|| locate(name)).ok_or_else(|| {
        let message = format!(
            "{name} is neither beside this program nor in PATH; install it from a clone of this \
             program's repository with `cargo install --path`"
        );
        Error::unavailable(Phase::Image, message)
    })
}

/// The name of the guests' init.
const INIT: &str = "kcov-vm-init";

/// Returns init from the cache. Builds it there if these sources or the recipe are new: in the
/// workspace, for its versions of other crates, or else alone.
fn init(recipe: &Recipe, workspace: Option<&Path>, cache: &Cache) -> Result<PathBuf> {
    let mut text = format!("{recipe:?}\n{MANIFEST}");
    SOURCES.iter().for_each(|(path, content)| text += &format!("{path}\n{content}"));
    let name = format!("{INIT}-{}", &hash::bytes(text.as_bytes())[..12]);
    let kept = cache.at("programs").join(&name);
    if kept.is_file() {
        return Ok(kept);
    }
    let _lock = cache.lock(Phase::Image, &name)?;
    if kept.is_file() {
        return Ok(kept);
    }
    let alone = cache.at("programs").join("init");
    if workspace.is_none() {
        unpack(&alone).or_unavailable(Phase::Image, alone.display())?;
    }
    let target = cache.at("programs").join("target");
    let built = recipe.build(workspace.unwrap_or(&alone), ["kcov-vm-guest", INIT], &target)?;
    fs::read(&built)
        .and_then(|content| cache::keep(&kept, content))
        .or_unavailable(Phase::Image, kept.display())?;
    Ok(kept)
}

/// Writes the sources as a workspace of their own.
fn unpack(directory: &Path) -> io::Result<()> {
    for (path, content) in SOURCES.iter().chain(&[("Cargo.toml", MANIFEST)]) {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(path, content)?;
    }
    Ok(())
}
