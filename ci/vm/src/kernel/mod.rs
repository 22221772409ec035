//! Finds kernels in the cache or builds them.

mod bench;
mod build;
mod key;
mod make;

pub(crate) use bench::complaint;
pub use bench::{AlteredTree, Bench};

use crate::cache::Cache;
use crate::error::{Error, Phase, Result};
use crate::host::{self, Need};
use crate::run::{command, locate, read};
use crate::source::Source;
use crate::target::Target;
use key::Ingredients;

use std::fs;
use std::path::{Path, PathBuf};

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The file to boot.
    pub file: PathBuf,
    /// The mark in its release string, if we built it.
    pub mark: Option<String>,
    /// Describes its source, for people.
    pub origin: String,
}

/// The file in a kernel's directory that is written last.
const PROOF: &str = "key.txt";

/// The file with the linked kernel and its relocations.
pub(crate) const RELOCATED: &str = "vmlinux.unstripped";

impl Kernel {
    /// Takes a kernel that the user built and named with the option or variable `by`.
    pub fn given(path: &Path, by: &str) -> Result<Self> {
        let file = fs::canonicalize(path).ok().filter(|path| path.is_file()).ok_or_else(|| {
            Error::usage(format!("{by} {}: there is no such file", path.display()))
        })?;
        let origin = file.display().to_string();
        Ok(Self { file, mark: None, origin })
    }

    /// Returns the cached kernel with exactly these ingredients, if there is one.
    pub(crate) fn cached(
        target: &Target,
        source: &Source,
        compiler: &Compiler,
        cache: &Cache,
    ) -> Result<Option<Self>> {
        Ok(Place::of(target, source, compiler, cache)?.kernel(source))
    }

    /// Returns the target's kernel and builds it if the cache lacks it.
    pub fn built(target: &Target, source: &Source, cache: &Cache) -> Result<Self> {
        // A cached kernel needs the compiler only for its key.
        if let Ok(compiler) = Compiler::of(target) {
            if let Some(kernel) = Self::cached(target, source, &compiler, cache)? {
                return Ok(kernel);
            }
        }
        host::require(Need::Build(target.arch))?;
        let compiler = Compiler::of(target)?;
        let place = Place::of(target, source, &compiler, cache)?;
        if place.ingredients.config.contains("CONFIG_DEBUG_INFO_BTF=y") {
            host::require(Need::Types)?;
        }
        let _lock = cache.lock(Phase::Build, &place.name)?;
        // The previous holder of the lock may have built it.
        if let Some(kernel) = place.kernel(source) {
            return Ok(kernel);
        }
        build::build(target, source, &place, cache)?;
        place.kernel(source).ok_or_else(|| {
            Error::unavailable(Phase::Build, format!("{} vanished", place.directory.display()))
        })
    }
}

/// An installed compiler for kernels.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compiler {
    /// Its version, for the key.
    pub version: String,
    /// The argument for `make` that names it, if it is not the default.
    pub argument: Option<String>,
}

impl Compiler {
    /// Returns the target's compiler: the program of that name in `PATH`.
    pub fn of(target: &Target) -> Result<Self> {
        let usual = target.arch.compiler();
        let name = if target.compiler.is_empty() { usual } else { &target.compiler };
        let Some(program) = locate(name) else {
            return Err(match target.compiler.as_str() {
                "" => Error::unavailable(Phase::Build, format!("{name} is missing; install it")),
                _ => Error::NotGiven(format!("needs {name}; put it into PATH")),
            });
        };
        let said = read(command(&program).arg("--version"))
            .map_err(|why| Error::unavailable(Phase::Build, why))?;
        let version = said.lines().next().unwrap_or_default().into();
        let argument = (!target.compiler.is_empty()).then(|| format!("CC={}", program.display()));
        Ok(Self { version, argument })
    }
}

/// The cache directory of a kernel. It depends only on the ingredients, so targets with the same
/// ingredients share it.
#[derive(Debug)]
pub struct Place {
    /// The kernel's ingredients.
    pub ingredients: Ingredients,
    /// The name of the directory, with the first digits of the key.
    pub name: String,
    mark: String,
    directory: PathBuf,
}

impl Place {
    /// Returns the place of the target's kernel, which may not be built.
    pub fn of(
        target: &Target,
        source: &Source,
        compiler: &Compiler,
        cache: &Cache,
    ) -> Result<Self> {
        let ingredients = Ingredients::of(target, source, compiler)?;
        let key = &ingredients.key()[..12];
        let name = format!("{}-{key}", target.kind.name());
        let (mark, directory) = (format!("-kcov-{key}"), cache.at("kernels").join(&name));
        Ok(Self { ingredients, name, mark, directory })
    }

    fn kernel(&self, source: &Source) -> Option<Kernel> {
        let proof = fs::read_to_string(self.directory.join(PROOF)).ok()?;
        let file = self.directory.join("kernel");
        let (mark, origin) = (Some(self.mark.clone()), source.describe());
        (proof == self.ingredients.text() && file.is_file()).then_some(Kernel {
            file,
            mark,
            origin,
        })
    }
}
