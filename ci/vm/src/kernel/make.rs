//! Runs the kernel's `make`.

use crate::error::{Error, OrUnavailable as _, Phase, Result, Unavailable};
use crate::parallel::processors;
use crate::progress::Step;
use crate::run::{command, not_started};
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Command;

/// One build of a kernel.
#[derive(Debug)]
pub struct Make<'a> {
    /// The source tree, which stays unchanged.
    pub tree: &'a Path,
    /// The output directory.
    pub output: &'a Path,
    /// The log of all output of `make`.
    pub log: &'a Path,
    /// The architecture and the make targets.
    pub arguments: &'a [String],
    /// The argument that names the compiler, if it is not the default.
    pub compiler: Option<String>,
    /// Becomes part of the release string, so the guest shows it.
    pub mark: &'a str,
}

impl Make<'_> {
    /// Writes `.config` with the options of `fragment` and their dependencies only.
    pub fn configure(&self, fragment: &str) -> Result<()> {
        let file = self.output.join("fragment");
        fs::write(&file, fragment).or_unavailable(Phase::Build, file.display())?;
        let mut all = std::ffi::OsString::from("KCONFIG_ALLCONFIG=");
        all.push(&file);
        let mut make = self.make();
        make.arg(all).args(self.arguments.iter().filter(|word| word.contains('=')));
        make.arg("allnoconfig");
        self.run(&mut make)
    }

    /// Builds the kernel.
    pub fn build(&self, name: &str) -> Result<()> {
        let step = Step::begin(format!("build {name}"));
        let mut make = self.make();
        make.arg(format!("-j{}", processors())).args(self.arguments);
        self.run(&mut make)?;
        step.done();
        Ok(())
    }

    /// Rebuilds only this directory after a change to one of its files.
    pub fn rebuild(&self, directory: &str) -> Result<()> {
        let mut make = self.make();
        make.args(self.arguments).arg(format!("build-dir={directory}"));
        self.run(&mut make)
    }

    fn make(&self) -> Command {
        let mut make = command("make");
        make.arg("-C").arg(self.tree);
        let mut output = std::ffi::OsString::from("O=");
        output.push(self.output);
        make.arg(output).arg(format!("LOCALVERSION={}", self.mark)).args(&self.compiler);
        // Makes the build reproducible.
        make.args(["KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970"]);
        make.args(["KBUILD_BUILD_USER=kcov", "KBUILD_BUILD_HOST=kcov", "KBUILD_BUILD_VERSION=1"]);
        make
    }

    /// Runs `make` and logs all its output.
    fn run(&self, make: &mut Command) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(self.log);
        let log = log.or_unavailable(Phase::Build, self.log.display())?;
        let errors = log.try_clone().or_unavailable(Phase::Build, self.log.display())?;
        let status = make.stdout(log).stderr(errors).status();
        let status = status
            .map_err(|error| Error::unavailable(Phase::Build, not_started("make", &error)))?;
        if status.success() {
            return Ok(());
        }
        let text = fs::read_to_string(self.log).unwrap_or_default();
        let message = format!("make failed ({})", status.to_string().replace(": ", " "));
        Err(Unavailable::new(Phase::Build, message).detail(relevant(&text)).logs(self.log).into())
    }
}

/// Returns the last lines of a log that mention errors, or else its last lines.
fn relevant(log: &str) -> Vec<String> {
    const MOST: usize = 15;
    let errors: Vec<_> = log.lines().filter(|line| line.to_lowercase().contains("error")).collect();
    let lines = if errors.is_empty() { log.lines().collect() } else { errors };
    let start = lines.len().saturating_sub(MOST);
    lines[start..].iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_picked_out_of_a_log() {
        let log = "  CC a.o\na.c:1: error: no\n  CC b.o\nmake: *** [a.o] Error 1\n  CC c.o\n";
        assert_eq!(relevant(log), ["a.c:1: error: no", "make: *** [a.o] Error 1"]);
        let quiet: String = (0..20).map(|number| format!("{number}\n")).collect();
        assert_eq!(relevant(&quiet).len(), 15);
        assert_eq!(relevant(&quiet)[14], "19");
    }
}
