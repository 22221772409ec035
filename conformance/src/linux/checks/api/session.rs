//! Enabling on Linux: missing modes, and the end of a thread.

use crate::check::{Context, checks};
use crate::checks::api::{enable, is_free, open};
use crate::raw::{call, thread};
use kcov::mode::{TraceCmp, TracePc};
use kcov::remote::linux::{CommonHandle, Remote};
use kcov::{ErrorKind, Operation};
use std::num::NonZeroU32;

checks! {
    "api.session.mode-not-built-in-is-named": mode_not_built_in_is_named,
    "api.session.leaked-in-ended-thread": leaked_in_ended_thread,
    "api.session.dropped-in-every-order": dropped_in_every_order,
}

fn mode_not_built_in_is_named(cx: &Context) {
    let mut device = open(cx, 1);
    let error = device.enable(TraceCmp).expect_err("not built in");
    assert_eq!((error.operation(), error.kind()), (Operation::Enable, ErrorKind::ModeNotBuiltIn));
    assert!(error.help().is_some_and(|help| help.contains("CONFIG_KCOV_ENABLE_COMPARISONS")));
    drop(enable(&mut device));
}

fn leaked_in_ended_thread(cx: &Context) {
    let mut device = open(cx, 1);
    thread(|| std::mem::forget(enable(&mut device)));
    let session = enable(&mut device);
    call();
    assert!(!session.disable().expect("disabled").trace().is_empty());
}

/// Drops a local and a remote session and their devices in either order. The rest keeps working.
fn dropped_in_every_order(cx: &Context) {
    let remote = Remote::new().common(CommonHandle::new(NonZeroU32::MIN));
    for local_first in [true, false] {
        let (mut one, mut other) = (open(cx, 1), open(cx, 1));
        let mut local = Some(enable(&mut one));
        let mut background = Some(other.enable_remote(TracePc, &remote).expect("both at once"));
        if local_first {
            drop(local.take());
            drop(background.take());
        } else {
            drop(background.take());
            let session = local.as_mut().expect("still there");
            session.reset();
            call();
            assert!(!session.trace().is_empty(), "the local session goes on");
        }
        drop((local, background));
        drop((one, other));
        assert!(is_free(cx));
        drop(open(cx, 1).enable_remote(TracePc, &remote).expect("the handle is free"));
    }
    // If both sessions are leaked, dropping the devices has to disable.
    for local_first in [true, false] {
        let (mut one, mut other) = (open(cx, 1), open(cx, 1));
        std::mem::forget(enable(&mut one));
        std::mem::forget(other.enable_remote(TracePc, &remote).expect("both at once"));
        let (first, second) = if local_first { (one, other) } else { (other, one) };
        drop(first);
        drop(second);
        assert!(is_free(cx));
        drop(open(cx, 1).enable_remote(TracePc, &remote).expect("the handle is free"));
    }
}
