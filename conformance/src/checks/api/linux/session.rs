//! Enabling on Linux: modes that are not there, and the end of a thread.

use crate::check::{Context, checks};
use crate::checks::api::{enable, kind, open};
use crate::raw::{call, thread};
use kcov::mode::{TraceCmp, TraceNone};
use kcov::{ErrorKind, Operation, Status};

checks! {
    mode_not_built_in_is_named without(Comparisons),
    mode_none_is_not_supported,
    leaked_in_ended_thread,
}

fn mode_not_built_in_is_named(cx: &Context) {
    let mut device = open(cx, 1);
    let error = device.enable(TraceCmp).expect_err("not built in");
    assert_eq!((error.operation(), error.kind()), (Operation::Enable, ErrorKind::ModeNotBuiltIn));
    assert!(error.help().is_some_and(|help| help.contains("CONFIG_KCOV_ENABLE_COMPARISONS")));
    drop(enable(&mut device));
}

fn mode_none_is_not_supported(cx: &Context) {
    assert_eq!(kind(open(cx, 1).enable(TraceNone)), ErrorKind::ModeNotSupported);
    match Status::probe_path(cx.device()) {
        Status::Available(modes) => assert!(!modes.contains(TraceNone)),
        other => panic!("{other}"),
    }
}

fn leaked_in_ended_thread(cx: &Context) {
    let mut device = open(cx, 1);
    thread(|| std::mem::forget(enable(&mut device)));
    let session = enable(&mut device);
    call();
    assert!(!session.disable().expect("disabled").is_empty());
}
