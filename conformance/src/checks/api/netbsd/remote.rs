//! Coverage from sources, on NetBSD.

use crate::check::{Context, checks};
use crate::checks::api::{enable, is_free, kind, open};
use crate::raw::{Controller, call, child, thread};
use kcov::mode::{TraceCmp, TracePc};
use kcov::remote::netbsd::{Source, Vhci};
use kcov::{ErrorKind, Operation};
use std::time::{Duration, Instant};

checks! {
    old_release_is_named needs(NetBsd9),
    unknown_source_is_refused needs(NetBsd10),
    attaching_a_traced_device_is_refused needs(NetBsd10),
    source_is_in_use needs(Vhci),
    source_is_in_use_elsewhere needs(Vhci),
    disabled_on_drop needs(Vhci),
    ended_elsewhere_is_said needs(Vhci),
    session_belongs_to_no_thread needs(Vhci),
    local_and_remote_at_once needs(Vhci),
    device_is_local_again needs(Vhci),
    leaked_attachment_ends_with_the_next_use needs(Vhci),
    waiting_has_a_limit needs(Vhci),
    new_device_is_collected needs(Vhci) seconds(60),
}

const PORT: Vhci = Vhci { bus: 0, port: 1 };

fn old_release_is_named(cx: &Context) {
    let mut device = open(cx, 4096);
    let error = device.attach(PORT).expect_err("not in this release");
    assert_eq!((error.operation(), error.kind()), (Operation::Attach, ErrorKind::Unsupported));
    assert!(error.help().is_some_and(|help| help.contains("NetBSD 10")));
    let session = enable(&mut device);
    call();
    assert!(!session.trace().is_empty(), "the device is as it was");
}

fn unknown_source_is_refused(cx: &Context) {
    let mut device = open(cx, 4096);
    for source in [Source::new(u64::MAX, 1), Vhci { bus: 0, port: 99 }.into()] {
        assert_eq!(kind(device.attach(source)), ErrorKind::NoSuchSource);
    }
    let session = enable(&mut device);
    call();
    assert!(!session.trace().is_empty(), "the device is as it was");
}

fn attaching_a_traced_device_is_refused(cx: &Context) {
    let mut device = open(cx, 1);
    std::mem::forget(enable(&mut device));
    assert_eq!(kind(device.attach(PORT)), ErrorKind::AlreadyEnabled);
}

fn source_is_in_use(cx: &Context) {
    let (mut first, mut second) = (open(cx, 1), open(cx, 1));
    let (mut one, mut two) = (first.attach(PORT).expect("one"), second.attach(PORT).expect("two"));
    let session = one.enable(TracePc).expect("enabled");
    assert_eq!(kind(two.enable(TraceCmp)), ErrorKind::SourceInUse);
    session.disable().expect("disabled");
    drop(two.enable(TracePc).expect("the other one now"));
}

fn source_is_in_use_elsewhere(cx: &Context) {
    let mut device = open(cx, 1);
    let mut attachment = device.attach(PORT).expect("attached");
    let _session = attachment.enable(TracePc).expect("enabled");
    let refused = child(|| {
        let mut device = open(cx, 1);
        let mut attachment = device.attach(PORT).expect("attached in the child");
        format!("{:?}", kind(attachment.enable(TracePc)))
    });
    assert_eq!(refused, "SourceInUse");
}

fn disabled_on_drop(cx: &Context) {
    let mut device = open(cx, 1);
    let mut attachment = device.attach(PORT).expect("attached");
    drop(attachment.enable(TracePc).expect("enabled"));
    std::mem::forget(attachment.enable(TracePc).expect("disabled, so enabled again"));
    drop(attachment);
    let mut attachment = device.attach(PORT).expect("attached again");
    std::mem::forget(attachment.enable(TracePc).expect("the leaked session ended with its owner"));
    std::mem::forget(attachment);
    drop(device);
    let mut device = open(cx, 1);
    let mut attachment = device.attach(PORT).expect("attached");
    drop(attachment.enable(TracePc).expect("the leaked attachment ended with its device"));
}

fn ended_elsewhere_is_said(cx: &Context) {
    let (mut first, mut second) = (open(cx, 1), open(cx, 1));
    let mut attachment = first.attach(PORT).expect("attached");
    let session = attachment.enable(TracePc).expect("enabled");
    drop(second.attach(PORT).expect("another one that comes and goes"));
    assert_eq!(kind(session.disable()), ErrorKind::EndedElsewhere);
}

fn session_belongs_to_no_thread(cx: &Context) {
    let mut device = open(cx, 1);
    let mut attachment = device.attach(PORT).expect("attached");
    let session = attachment.enable(TracePc).expect("enabled");
    let empty = std::thread::scope(|scope| {
        let other = scope.spawn(move || session.disable().expect("in another thread").is_empty());
        other.join().expect("the other thread")
    });
    assert!(empty);
    let session = thread(|| attachment.enable(TracePc).expect("in a thread that has ended"));
    assert!(session.disable().expect("and here").is_empty());
}

fn local_and_remote_at_once(cx: &Context) {
    let (mut local, mut remote) = (open(cx, 4096), open(cx, 1));
    let mut attachment = remote.attach(PORT).expect("attached");
    let remote_session = attachment.enable(TracePc).expect("enabled");
    let local_session = enable(&mut local);
    call();
    assert!(!local_session.disable().expect("disabled").is_empty());
    assert!(remote_session.disable().expect("disabled").is_empty(), "nothing has appeared");
}

fn device_is_local_again(cx: &Context) {
    let mut device = open(cx, 4096);
    let attachment = device.attach(PORT).expect("attached");
    assert_eq!(attachment.words(), 256 << 10);
    assert_eq!(attachment.capacity(TraceCmp), ((256 << 10) - 1) / 4);
    drop(attachment);
    let session = enable(&mut device);
    call();
    assert!(!session.disable().expect("disabled").is_empty());
    assert!(is_free(cx));
}

fn leaked_attachment_ends_with_the_next_use(cx: &Context) {
    let mut device = open(cx, 4096);
    std::mem::forget(device.attach(PORT).expect("attached"));
    let session = enable(&mut device);
    call();
    assert!(!session.disable().expect("disabled").is_empty(), "this thread was traced");
    std::mem::forget(device.attach(PORT).expect("attached"));
    drop(device.attach(PORT).expect("attached again"));
}

fn waiting_has_a_limit(cx: &Context) {
    let mut device = open(cx, 1);
    let mut attachment = device.attach(PORT).expect("attached");
    let session = attachment.enable(TracePc).expect("enabled");
    let limit = Duration::from_millis(50);
    let start = Instant::now();
    assert!(session.wait(limit).is_empty());
    assert!(start.elapsed() >= limit);
    assert!(session.wait(Duration::ZERO).is_empty());
}

fn new_device_is_collected(cx: &Context) {
    let mut device = open(cx, 1);
    let mut attachment = device.attach(PORT).expect("attached");
    let mut session = attachment.enable(TracePc).expect("enabled");
    let controller = Controller::open(PORT.port).expect("the controller opens");
    controller.plug_in().expect("a device appears");
    assert!(!session.wait(Duration::from_secs(40)).is_empty());
    session.reset();
    drop(controller);
    session.disable().expect("not ended elsewhere");
}
