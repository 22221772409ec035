//! Builds programs for guests with cargo.

use crate::arch::Arch;
use crate::error::{Error, Phase, Result};
use crate::host::{Need, require};
use crate::run::{command, ends_with_us, not_started, read};
use rustix::process::Signal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile of guest programs, in their workspace's `Cargo.toml`.
const PROFILE: &str = "guest";

/// How programs for one triple are built.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The triple.
    pub triple: String,
    /// The flags for rustc.
    pub flags: Vec<String>,
    /// More flags for the program itself. If they change, its dependencies are not compiled again.
    pub link: Vec<String>,
}

impl Recipe {
    /// Builds static programs for Linux.
    pub fn linux(triple: &str) -> Result<Self> {
        require_std(triple)?;
        let mut flags = vec!["-Ctarget-feature=+crt-static".to_string()];
        if triple.ends_with("-musl") {
            // Few hosts have a cross compiler. Rust brings its own linker and musl.
            flags.extend(["-Clinker=rust-lld", "-Clinker-flavor=ld.lld"].map(String::from));
        } else if let Some(arch) = Arch::of_triple(triple).filter(|arch| !arch.is_host()) {
            require(Need::Link(arch))?;
            flags.push(format!("-Clinker={}", arch.compiler()));
        }
        Ok(Self { triple: triple.into(), flags, link: Vec::new() })
    }

    /// Builds a binary of a workspace's package and returns its path below `target`.
    pub fn build(
        &self,
        workspace: &Path,
        [package, binary]: [&str; 2],
        target: &Path,
    ) -> Result<PathBuf> {
        let Self { triple, flags, link } = self;
        let fail = |why: String| Error::unavailable(Phase::Image, why);
        let mut cargo = cargo();
        ends_with_us(&mut cargo, Signal::TERM);
        cargo.current_dir(workspace).args(["rustc", "--quiet", "--package", package]);
        cargo.args(["--bin", binary, "--profile", PROFILE, "--target", triple]);
        cargo.arg("--target-dir").arg(target);
        // This variable overrides all other flags, and allows spaces in paths.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        cargo.arg("--").args(link);
        let path = target.join(triple).join(PROFILE).join(binary);
        if !path.is_file() {
            eprintln!("build {binary} ({triple}) ...");
        }
        let status = cargo.status().map_err(|error| fail(not_started("cargo", &error)))?;
        if status.success() {
            return Ok(path);
        }
        Err(fail(format!("cargo could not build {binary} for {triple}")))
    }
}

/// Makes a command of the cargo that runs this program, or else of the one in `PATH`.
pub fn cargo() -> Command {
    Command::new(variable("CARGO").unwrap_or(OsString::from("cargo")))
}

/// The directory below a workspace's target directory that guest programs are built in, so that
/// other builds keep theirs.
pub fn target_directory(workspace: &Path) -> PathBuf {
    variable("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), Into::into)
        .join("kcov-vm")
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Installs the standard library for these programs if it is missing.
pub(crate) fn require_std(triple: &str) -> Result<()> {
    let there = || {
        let mut rustc = command("rustc");
        let directory = read(rustc.args(["--print", "target-libdir", "--target", triple]));
        directory.is_ok_and(|directory| Path::new(directory.trim()).is_dir())
    };
    if there() {
        return Ok(());
    }
    read(command("rustup").args(["target", "add", triple])).map(drop).map_err(|why| {
        let message =
            format!("no standard library for {triple}: {why}; run `rustup target add {triple}`");
        Error::unavailable(Phase::Image, message)
    })
}
