//! Finds kernels in the cache or builds them.

mod bench;
mod build;
mod compiler;
mod config;
mod key;
mod make;

pub(crate) use bench::complaint;
pub use bench::{AlteredTree, Bench};

use crate::cache::{self, Cache};
use crate::error::{Error, Phase, Result};
use crate::hash;
use crate::host::{self, Need};
use crate::source::Source;
use crate::target::{Kind, Target};
use key::Ingredients;

pub use compiler::Compiler;
use std::fs::{self, File};
use std::io::Read as _;
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

/// The file with the digest of the kernel as it was built.
const DIGEST: &str = "sha256.txt";

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

    /// Refuses a file that cannot be a kernel of this kind, unless a later check has a better
    /// message.
    pub fn check(&self, kind: Kind) -> Result<()> {
        // If the host cannot execute the file, it would be run as a shell script.
        if kind == Kind::Uml && !runnable(&self.file) {
            let message = format!(
                "{} is not a program, and a uml target's kernel has to be one",
                self.file.display()
            );
            return Err(Error::unavailable(Phase::Image, message));
        }
        Ok(())
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
        if host::has_compiler(target.arch) {
            let compiler = Compiler::of(target, cache)?;
            if let Some(kernel) = Self::cached(target, source, &compiler, cache)? {
                match kernel.damage() {
                    None => return Ok(kernel),
                    Some(why) => eprintln!("{}: {why}; building it again", kernel.file.display()),
                }
            }
        }
        host::require(Need::Build(target.arch))?;
        let compiler = Compiler::of(target, cache)?;
        let place = Place::of(target, source, &compiler, cache)?;
        if place.ingredients.config.contains("CONFIG_DEBUG_INFO_BTF=y") {
            host::require(Need::Types)?;
        }
        let _lock = cache.lock(Phase::Build, &place.name)?;
        // The previous holder of the lock may have built it.
        if let Some(kernel) = place.kernel(source).filter(|kernel| kernel.damage().is_none()) {
            return Ok(kernel);
        }
        build::build(target, source, &place, cache)?;
        place.kernel(source).ok_or_else(|| {
            Error::unavailable(Phase::Build, format!("{} vanished", place.directory.display()))
        })
    }

    /// Returns how a cached kernel differs from its build, if it does. Otherwise notes its use.
    pub(crate) fn damage(&self) -> Option<String> {
        let digest = match hash::file(&self.file) {
            Ok(digest) => digest,
            Err(error) => return Some(format!("the kernel cannot be read: {error}")),
        };
        let kept = self.file.with_file_name(DIGEST);
        match fs::read_to_string(&kept) {
            Ok(text) if text.trim() == digest => {
                self.file.parent().map(cache::touch);
                None
            }
            _ => Some("the kernel is damaged: its digest is not that of its build".into()),
        }
    }
}

fn runnable(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(4).read_to_end(&mut start));
    read.is_ok() && (start == b"\x7fELF" || start.starts_with(b"#!"))
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
        let (mark, directory) = (format!("-kcov-{key}"), cache.kernels().join(&name));
        Ok(Self { ingredients, name, mark, directory })
    }

    fn kernel(&self, source: &Source) -> Option<Kernel> {
        let proof = fs::read_to_string(self.directory.join(PROOF)).ok()?;
        (proof == self.ingredients.text()).then(|| Kernel {
            file: self.directory.join("kernel"),
            mark: Some(self.mark.clone()),
            origin: source.describe(),
        })
    }
}
