//! The suite's command. See `kcov-conformance help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kcov_conformance::cli::main()
}
