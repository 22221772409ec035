//! Commands and their outcomes.

use std::process::{Command, Output};

/// A command's exit status and output.
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A command of the runner.
pub fn vm(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-ci"));
    command.args(words);
    command
}

pub fn outcome(command: &mut Command) -> Outcome {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    // The first build is announced, and so is waiting for it.
    let announced = |line: &str| line.starts_with("build ") || line.starts_with("waiting for ");
    let matters = |line: &&str| !announced(line);
    let stderr = text(stderr).split_inclusive('\n').filter(matters).collect();
    Outcome { status: status.code(), stdout: text(stdout), stderr }
}
