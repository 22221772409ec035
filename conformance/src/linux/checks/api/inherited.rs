//! Buffers that are not inherited, and process ids that repeat.

use crate::check::{Context, checks};
use crate::checks::api::inherited::{leaves_others_alone, private, works_and_ends};
use crate::raw::child;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Pid, getpid};

checks! {
    "api.inherited.child-with-its-parents-process-id": child_with_its_parents_process_id,
}

/// Runs a closure as the first process of a new namespace.
fn first_process(body: impl FnOnce()) {
    unshare(CloneFlags::CLONE_NEWPID).expect("a namespace of processes");
    child(|| {
        assert_eq!(getpid(), Pid::from_raw(1));
        body();
    });
}

fn child_with_its_parents_process_id(cx: &Context) {
    first_process(|| {
        let (device, place) = private(cx);
        let mut device = Some(device);
        first_process(|| leaves_others_alone(device.take(), &place));
        works_and_ends(cx, device.expect("the parent's"), &place);
    });
}
