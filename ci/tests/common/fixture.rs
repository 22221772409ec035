//! The program that misbehaves on request, and the failures that it provokes.

use super::outcome::Outcome;
use kcov_vm::arch::Arch;
use kcov_vm::toolchain::{Recipe, target_directory};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub fn fixture() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let program = ["kcov-vm-guest", "kcov-vm-fixture"];
        let recipe = Recipe::linux(Arch::host().triple).expect("a host triple");
        recipe.build(workspace, program, &target_directory(workspace)).expect("the fixture builds")
    })
}

/// Asserts exit status 69 and these words on standard error.
#[track_caller]
pub fn assert_no_verdict(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status, Some(69), "{}", outcome.stderr);
    for word in words {
        assert!(outcome.stderr.contains(word), "`{word}` is not in: {}", outcome.stderr);
    }
}
