//! The location of the kernel's code, which `kcov_signal` does not read on NetBSD.

use crate::check::{Context, checks};
use kcov_signal::{KernelText, KernelTextError};

checks! {
    "api.kernel-text.not-read-here": not_read_here,
}

fn not_read_here(_: &Context) {
    let error = KernelText::read().expect_err("there is no such file");
    assert!(matches!(error, KernelTextError::Unreadable(_)), "{error}");
}
