//! Child buffers on Linux: refusals when one is made.

use crate::check::{Context, checks};
use crate::checks::api::{enable, kind, left, lend, open, with_device_of_a_living_thread};
use crate::raw::{call, child};
use kcov::ErrorKind;
use kcov::mode::{TraceCmp, TracePc};

checks! {
    "api.child-buffer.mode-not-built-in-is-refused": mode_not_built_in_is_refused,
    "api.child-buffer.made-while-this-thread-is-traced": made_while_this_thread_is_traced,
}

fn mode_not_built_in_is_refused(cx: &Context) {
    let mut device = open(cx, 1);
    assert_eq!(kind(device.child_buffer(TraceCmp)), ErrorKind::ModeNotBuiltIn);
    drop(device.into_child_buffer(TracePc).expect("the other mode"));
    assert_eq!(kind(open(cx, 1).into_child_buffer(TraceCmp)), ErrorKind::ModeNotBuiltIn);
}

fn made_while_this_thread_is_traced(cx: &Context) {
    let (mut traced, mut device) = (open(cx, 1 << 16), open(cx, 1 << 16));
    let session = enable(&mut traced);
    let mut buffer = lend(&mut device);
    assert!(left(&buffer).is_empty());
    // The child does not inherit the tracing, so it may enable.
    let seen = child(|| {
        let session = buffer.enable().expect("enabled in the child");
        call();
        session.disable().expect("disabled").trace().len()
    });
    assert!(seen > 0 && left(&buffer).len() == seen);
    call();
    assert!(!session.disable().expect("this thread was traced all the time").trace().is_empty());

    // A device that another thread is traced into is still refused.
    with_device_of_a_living_thread(cx, |device, _| {
        let session = enable(&mut traced);
        assert_eq!(kind(device.into_child_buffer(TracePc)), ErrorKind::AlreadyEnabled);
        drop(session);
    });
}
