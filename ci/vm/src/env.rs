//! `env`: the variables with which cargo builds programs for a target and runs them there.

use crate::error::{Error, Phase, Result, STATUS_PASSED};
use crate::netbsd::TRIPLE;
use crate::output::print;
use crate::run::{command, read};
use crate::session::Session;
use crate::system::System;
use crate::target::Target;
use crate::toolchain::Recipe;
use std::env::{args, current_exe};

/// The variable that makes cargo build for another triple.
const BUILD_TARGET: &str = "CARGO_BUILD_TARGET";

/// Prints the variables as commands for a shell.
pub fn run(session: &Session, target: &Target) -> Result<u8> {
    let mut lines = Vec::new();
    let triple = match target.kind.system() {
        System::Linux => match target.userland.unwrap_or(target.arch) {
            arch if arch.is_host() => host()?,
            arch => {
                let Recipe { triple, flags, .. } = Recipe::linux(arch.triple)?;
                lines.push((BUILD_TARGET.into(), triple.clone()));
                lines.push((variable(&triple, "RUSTFLAGS"), flags.join(" ")));
                triple
            }
        },
        System::NetBsd => {
            let libraries = session.programs.netbsd.as_ref().ok_or_else(|| {
                let why = "needs --sysroot DIR (usr/lib of the release's comp set)";
                Error::NotGiven(format!("{}: {why}", target.name))
            })?;
            let (linker, flags) = libraries.cargo()?;
            lines.push((BUILD_TARGET.into(), TRIPLE.into()));
            lines.push((variable(TRIPLE, "LINKER"), linker));
            lines.push((variable(TRIPLE, "RUSTFLAGS"), flags));
            TRIPLE.to_string()
        }
    };
    if session.given(target).is_ok() {
        let program =
            current_exe().map_err(|error| Error::unavailable(Phase::Output, error.to_string()))?;
        let mut words = vec![program.display().to_string(), "runner".into(), target.name.clone()];
        // The options are the runner's, which starts elsewhere.
        let options = args().skip_while(|word| word != "env").skip(1);
        words.extend(options.filter(|word| *word != target.name).map(|word| whole(&word)));
        // Cargo splits the value at white space.
        if let Some(word) = words.iter().find(|word| word.contains(char::is_whitespace)) {
            let why = format!("{word}: cargo cannot call a runner with a space in its words");
            return Err(Error::unavailable(Phase::Output, why));
        }
        lines.push((variable(&triple, "RUNNER"), words.join(" ")));
    }
    print(&render(&lines));
    Ok(STATUS_PASSED)
}

/// Makes a path absolute that is a word, or a part of one.
fn whole(word: &str) -> String {
    match word.split_once('=') {
        Some((option, path)) if option.starts_with("--") => format!("{option}={}", whole(path)),
        _ if word.contains('/') => std::path::absolute(word)
            .map_or_else(|_| word.into(), |path| path.display().to_string()),
        _ => word.into(),
    }
}

/// The host's target triple.
fn host() -> Result<String> {
    let unknown = |why| Error::unavailable(Phase::Output, why);
    let text = read(command("rustc").arg("-vV")).map_err(unknown)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| unknown("rustc -vV names no host".into()))
}

/// The variable of cargo for a setting of a target triple.
fn variable(triple: &str, setting: &str) -> String {
    format!("CARGO_TARGET_{}_{setting}", triple.to_uppercase().replace(['-', '.'], "_"))
}

fn render(lines: &[(String, String)]) -> String {
    let line = |(name, value): &(String, String)| {
        format!("export {name}='{}'\n", value.replace('\'', r"'\''"))
    };
    lines.iter().map(line).collect()
}
