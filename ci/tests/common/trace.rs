//! Runs commands under the tracer in guests.

use super::outcome::{Outcome, outcome, vm};

/// Runs a command through `trace`; `words` are the target and its options.
pub fn trace(words: &[&str], program: &str, arguments: &[&str]) -> Outcome {
    outcome(vm(&["trace"]).args(words).arg("--").arg(program).args(arguments))
}
