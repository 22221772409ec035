//! The suite's command, see `kcov-conformance help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kcov_conformance::cli::main()
}
