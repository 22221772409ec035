//! Commands under the tracer, in guests.

use super::outcome::{Outcome, outcome};
use std::process::Command;

/// A command through `trace`: the target and its options are `words`.
pub fn trace(words: &[&str], program: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-vm"));
    outcome(command.arg("trace").args(words).arg("--").arg(program).args(arguments))
}
