//! What came of a command.

use std::process::{Command, Output};

/// How a command ended, and what it printed.
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub fn outcome(command: &mut Command) -> Outcome {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    // What is built the first time is told of.
    let matters = |line: &&str| !line.starts_with("build ");
    let stderr = text(stderr).split_inclusive('\n').filter(matters).collect();
    Outcome { status: status.code(), stdout: text(stdout), stderr }
}
