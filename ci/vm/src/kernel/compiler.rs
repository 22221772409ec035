//! A kernel's compiler: an installed program, or a distribution's package that
//! is unpacked in the cache.

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::progress::Step;
use crate::run::{command, locate, read};
use crate::source::Package;
use crate::target::Target;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A compiler for kernels.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Compiler {
    /// An installed program and its version string.
    Program(PathBuf, String),
    /// A package that is not installed.
    Package(Package),
}

/// Runs an unpacked compiler with the loader and libraries of its own
/// distribution. The explicit name matters: otherwise the compiler would look
/// for its files next to the loader, and run the loader for each further step.
const STARTER: &str = r#"#!/bin/sh
bin=${0%/*}
root=${bin%/usr/lib/*}
for loader in "$root"/usr/lib/*-linux-gnu/ld-linux-*.so.?; do
    libraries=${loader%/*}
done
run() {
    exec "$loader" --library-path "$libraries:${bin%/bin}/lib" \
        --argv0 "$0" "$bin/clang" "$@"
}
case $1 in
    -cc1*) run "$@" ;;
    *) run -no-canonical-prefixes "$@" ;;
esac
"#;

/// The starter's file name, next to the compiler.
const STARTER_NAME: &str = "kcov-vm-cc";

impl Compiler {
    /// Returns the target's compiler: the program of that name in `PATH`, or
    /// else a package.
    pub fn of(target: &Target, cache: &Cache) -> Result<Self> {
        if let Some(own) = Self::own(target)? {
            return Ok(own);
        }
        if target.compiler.is_empty() {
            let message = format!("{} is not installed; install it", target.arch.compiler());
            return Err(Error::unavailable(Phase::Build, message));
        }
        Package::find(&target.wanted_compiler, cache)
            .map(Self::Package)
            .map_err(|why| missing(target, &why))
    }

    /// Returns the result of `of` as far as it is known without a search.
    pub fn last_known(target: &Target, cache: &Cache) -> Result<Option<Self>> {
        if let Some(own) = Self::own(target)? {
            return Ok(Some(own));
        }
        let known = Package::last_known(&target.wanted_compiler, cache);
        Ok(known.map(Self::Package))
    }

    /// The program of the compiler's name in `PATH`.
    fn own(target: &Target) -> Result<Option<Self>> {
        let usual = target.arch.compiler();
        let name = if target.compiler.is_empty() { usual } else { &target.compiler };
        locate(name).map(Self::program).transpose()
    }

    fn program(program: PathBuf) -> Result<Self> {
        let said = read(command(&program).arg("--version"))
            .map_err(|why| Error::unavailable(Phase::Build, why))?;
        Ok(Self::Program(program, said.lines().next().unwrap_or_default().into()))
    }

    /// Its identity, for the key.
    pub fn identity(&self) -> String {
        match self {
            Self::Program(_, version) => version.clone(),
            Self::Package(package) => package.identity(),
        }
    }

    /// Returns the argument for `make` that names the compiler, if it is not the
    /// default. Unpacks the compiler if necessary.
    pub fn make_argument(&self, target: &Target, cache: &Cache) -> Result<Option<String>> {
        let program = match self {
            Self::Program(..) if target.compiler.is_empty() => return Ok(None),
            Self::Program(program, _) => program.clone(),
            Self::Package(package) => {
                unpacked(package, cache).map_err(|why| missing(target, &why))?
            }
        };
        Ok(Some(format!("CC={}", program.display())))
    }
}

fn missing(target: &Target, why: &Error) -> Error {
    let (name, suite) = (&target.compiler, &target.compiler_suite);
    let message = format!(
        "{name} is missing and Debian's suite {suite} cannot provide it: {why}; put {name} \
         into PATH, or let apt reach a mirror with that suite"
    );
    Error::unavailable(Phase::Build, message)
}

/// Returns the package's compiler. Downloads it and everything it needs if it is not in the cache.
fn unpacked(package: &Package, cache: &Cache) -> Result<PathBuf> {
    let name = package.directory();
    let root = cache.compilers().join(&name);
    let _lock = cache.lock(Phase::Build, &name)?;
    if !root.is_dir() {
        let scratch = cache::scratch(&cache.compilers(), &name)
            .or_unavailable(Phase::Build, cache.compilers().display())?;
        let unpacked = scratch.path().join("root");
        fs::create_dir(&unpacked).or_unavailable(Phase::Build, unpacked.display())?;
        let files = package.download_with_needs(cache, scratch.path())?;
        let step = Step::begin(format!("unpack {}", package.name));
        for file in files {
            read(command("dpkg-deb").arg("-x").arg(file).arg(&unpacked))
                .map_err(|why| Error::unavailable(Phase::Build, why))?;
        }
        let starter = starter(&unpacked, &package.name)?;
        fs::write(&starter, STARTER).or_unavailable(Phase::Build, starter.display())?;
        fs::set_permissions(&starter, fs::Permissions::from_mode(0o755))
            .or_unavailable(Phase::Build, starter.display())?;
        // A compiler that does not run must not stay there.
        Compiler::program(starter)?;
        fs::rename(&unpacked, &root).or_unavailable(Phase::Build, root.display())?;
        step.done();
    }
    cache::touch(&root);
    starter(&root, &package.name)
}

/// The path of the starter: next to the program that `/usr/bin` links to.
fn starter(root: &Path, name: &str) -> Result<PathBuf> {
    let link = root.join("usr/bin").join(name);
    let program = fs::canonicalize(&link).or_unavailable(Phase::Build, link.display())?;
    Ok(program.with_file_name(STARTER_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::STATUS_UNAVAILABLE;
    use crate::target::{Pins, Targets};

    #[test]
    fn a_missing_compiler_is_no_verdict() {
        let root = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(Some(root.path())).expect("a cache");
        let base = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data"));
        let mut target = Targets::load(&base.join("targets.toml")).expect("valid").all.remove(0);
        target.compiler = "gcc-0".into();
        target.compiler_suite = "none".into();
        target.wanted_compiler = Pins::default().wanted("gcc-0", "none");
        assert_eq!(Compiler::last_known(&target, &cache).expect("nothing is asked"), None);
        // The remembered package avoids a search; its download fails.
        let package = r#"{"name":"gcc-0","version":"1:0-1","suite":"none"}"#;
        fs::write(cache.sources().join("gcc-0@none.json"), package).expect("a file");
        let compiler = Compiler::of(&target, &cache).expect("known");
        assert_eq!(compiler.identity(), "package gcc-0 1:0-1");
        let error = compiler.make_argument(&target, &cache).expect_err("there is none");
        assert_eq!(error.status(), STATUS_UNAVAILABLE);
        let text = error.to_string();
        for part in ["gcc-0 is missing", "suite none", "put gcc-0 into PATH"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!cache.compilers().join("gcc-0-1_0-1").exists());
    }
}
