//! Builds the workspace's guest programs: static, and in their own target
//! directory, so that other builds keep theirs.

mod init;

use crate::cache::Cache;
use crate::error::{Error, Phase, Result};
use crate::netbsd::{self, Libraries};
use crate::progress::Step;
use crate::run::{command, not_started, read};
use crate::system::System;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A binary of a workspace member.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The package.
    pub package: &'static str,
    /// The binary in it.
    pub binary: &'static str,
}

/// PID 1 of every guest.
pub const INIT: Program = Program { package: "kcov-vm-guest", binary: "kcov-vm-init" };

/// The program that misbehaves on request, for tests.
pub const FIXTURE: Program = Program { package: "kcov-vm-guest", binary: "kcov-vm-fixture" };

/// The default program of `cargo vm test`. It must understand `list --system
/// WORD`, `plan --release R --declare WORDS` and `run --format ktap --declare
/// WORDS [ID…]`.
pub const SUITE: Program = Program { package: "kcov-conformance", binary: "kcov-conformance" };

/// The program that `cargo vm trace` runs in the guest, and then on the host to
/// read the trace. It must understand `--raw FILE -- COMMAND`, `--read FILE` and
/// that command's options.
pub const TRACER: Program = Program { package: "kcov-trace", binary: "kcov-trace" };

/// The default triple of guest programs.
pub const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The triple of 32-bit programs for the same kernels.
pub const TRIPLE_32: &str = "i686-unknown-linux-musl";

/// The profile of guest programs, in the workspace's `Cargo.toml`.
const PROFILE: &str = "guest";

/// Builds each program at most once, in the thread that asks first.
#[derive(Debug, Default)]
pub struct Programs {
    built: Mutex<Vec<(&'static str, String, PathBuf)>>,
    /// The user's libraries for NetBSD.
    pub netbsd: Option<Libraries>,
    /// The cache for Linux guests' init. It avoids calling cargo, which takes time
    /// and a lock.
    pub kept: Option<Cache>,
}

impl Programs {
    /// Returns the guests' init.
    pub fn init(&self, system: System) -> Result<PathBuf> {
        match system {
            System::Linux => match &self.kept {
                Some(cache) => init::kept(cache),
                None => self.once(INIT, TRIPLE),
            },
            System::NetBsd => self.once(INIT, netbsd::TRIPLE),
        }
    }

    /// Returns the workspace's test suite, for this host and most guests.
    pub fn suite(&self) -> Result<PathBuf> {
        self.once(SUITE, TRIPLE)
    }

    /// Returns the workspace's test suite for this triple.
    pub fn suite_for(&self, triple: &str) -> Result<PathBuf> {
        self.once(SUITE, triple)
    }

    /// Returns the program that traces commands, for guests and this host.
    pub fn tracer(&self) -> Result<PathBuf> {
        self.once(TRACER, TRIPLE)
    }

    /// Returns the suite's ids for a system.
    pub fn checks(&self, system: System) -> Result<Vec<String>> {
        let list = read(command(self.suite()?).args(["list", "--system", system.word()]))
            .map_err(|why| Error::unavailable(Phase::Image, why))?;
        Ok(list.lines().filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect())
    }

    /// Returns the suite's plan for a kernel with these declared words and this
    /// release.
    pub fn plan(&self, declares: &[String], release: &str) -> Result<String> {
        let words = ["plan", "--release", release, "--declare", &declares.join(",")];
        read(command(self.suite()?).args(words))
            .map_err(|why| Error::unavailable(Phase::Verdict, why))
    }

    fn once(&self, program: Program, triple: &str) -> Result<PathBuf> {
        // A thread that panicked while building has left the list unchanged.
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let known = built.iter().find(|(name, of, _)| *name == program.binary && of == triple);
        if let Some((_, _, path)) = known {
            return Ok(path.clone());
        }
        let path = match &self.netbsd {
            Some(libraries) if triple == netbsd::TRIPLE => libraries.build(program)?,
            _ => build(program, triple)?,
        };
        built.push((program.binary, triple.to_string(), path.clone()));
        Ok(path)
    }
}

/// Builds a program and returns its path.
pub fn build(program: Program, triple: &str) -> Result<PathBuf> {
    compile(program, triple, &flags(triple)?, Std::Installed)
}

/// Builds the test suite in another copy of the workspace. NetBSD's needs the user's libraries.
pub(crate) fn build_suite_of(
    copy: &Path,
    triple: &str,
    netbsd: Option<&Libraries>,
) -> Result<PathBuf> {
    let (flags, std) = match netbsd {
        Some(libraries) if triple == netbsd::TRIPLE => libraries.way()?,
        _ => (flags(triple)?, Std::Installed),
    };
    compile_in(copy, SUITE, triple, &flags, std, &copy.join("target"))
}

fn flags(triple: &str) -> Result<Vec<String>> {
    require_std(triple)?;
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_string()];
    if triple != TRIPLE {
        // Few hosts have a 32-bit compiler. Rust brings its own linker and musl.
        flags.extend(["-Clinker=rust-lld", "-Clinker-flavor=ld.lld"].map(String::from));
    }
    Ok(flags)
}

/// The origin of the standard library.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Std {
    /// Installed by rustup.
    Installed,
    /// Compiled from source.
    Compiled,
}

/// Builds a program with cargo and returns its path.
pub(crate) fn compile(
    program: Program,
    triple: &str,
    flags: &[String],
    std: Std,
) -> Result<PathBuf> {
    let target =
        variable("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), Into::into);
    compile_in(workspace(), program, triple, flags, std, &target.join("kcov-vm"))
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn compile_in(
    workspace: &Path,
    program: Program,
    triple: &str,
    flags: &[String],
    std: Std,
    target: &Path,
) -> Result<PathBuf> {
    let Program { package, binary } = program;
    let fail = |why: String| Error::unavailable(Phase::Image, why);
    let mut cargo = Command::new(variable("CARGO").unwrap_or(OsString::from("cargo")));
    cargo.current_dir(workspace).args(["build", "--quiet", "--package", package]);
    cargo.args(["--bin", binary, "--profile", PROFILE, "--target", triple]);
    cargo.arg("--target-dir").arg(target);
    // This variable overrides all other flags, and allows spaces in paths.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    if std == Std::Compiled {
        cargo.arg("-Zbuild-std").env("RUSTC_BOOTSTRAP", "1");
    }
    let path = target.join(triple).join(PROFILE).join(binary);
    let step = (!path.exists()).then(|| Step::begin(format!("build {binary} ({triple})"), None));
    let status = cargo.status().map_err(|error| fail(not_started("cargo", &error)))?;
    if !status.success() {
        return Err(fail(format!("cargo could not build {binary} for {triple}")));
    }
    if let Some(step) = step {
        step.done();
    }
    Ok(path)
}

/// The workspace that built this program.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}

/// Installs the standard library for these programs if it is missing.
pub(crate) fn require_std(triple: &str) -> Result<()> {
    let there = || {
        let mut rustc = command("rustc");
        let directory = read(rustc.args(["--print", "target-libdir", "--target", triple]));
        directory.is_ok_and(|directory| Path::new(directory.trim()).is_dir())
    };
    if triple == TRIPLE || there() {
        return Ok(());
    }
    read(command("rustup").args(["target", "add", triple])).map(drop).map_err(|why| {
        let message = format!("no standard library for {triple}: {why}");
        Error::unavailable(Phase::Image, message)
    })
}
