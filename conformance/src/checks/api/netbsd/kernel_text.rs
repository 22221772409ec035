//! Where the kernel's code is, which this crate does not find out on NetBSD.

use crate::check::{Context, checks};
use crate::checks::api::kind;
use kcov::{ErrorKind, KernelText};

checks! {
    not_read_here,
}

fn not_read_here(_: &Context) {
    assert_eq!(kind(KernelText::read()), ErrorKind::Unsupported);
}
