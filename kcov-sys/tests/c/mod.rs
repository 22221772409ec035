//! Checks what a header defines, with a C compiler.

use std::fmt::Display;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// A line of C that compiles only if the expression has the value.
pub fn assertion(expression: impl Display, value: u64) -> String {
    format!("_Static_assert(({expression}) == {value}ull, \"{expression}\");\n")
}

/// Compiles a text. `Err` has the compiler's messages.
pub fn compile(flags: &[&str], text: &str) -> Result<(), String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut child = Command::new(&compiler)
        .args(["-fsyntax-only", "-std=gnu11"])
        .args(flags)
        .args(["-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run the C compiler `{compiler}`: {error}"));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
