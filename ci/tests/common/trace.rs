//! Runs commands under the tracer in guests.

use super::outcome::{Outcome, outcome};
use std::process::Command;

/// Runs a command through `trace`; `words` are the target and its options.
pub fn trace(words: &[&str], program: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-ci"));
    outcome(command.arg("trace").args(words).arg("--").arg(program).args(arguments))
}
