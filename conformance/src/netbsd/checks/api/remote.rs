//! Coverage from sources on NetBSD.

use super::*;
use kcov::remote::netbsd::{Attachment, Source};

/// A port that stays empty in all checks. At a used one, the hub driver keeps working for a while.
const PORT: Source = Source::vhci(0, 2);
/// The port at which this file's check plugs a device in. No check expects silence there.
const BUSY: u32 = 1;

fn attach(cx: &Context) -> Attachment {
    open(cx, 1).attach(PORT).expect("attached")
}

/// Forks a process that attaches to the source and runs `act` once it gets a byte. It must be
/// forked before this process attaches.
fn another_process(cx: &Context, act: fn(Attachment) -> String) -> (Child<String>, OwnedFd) {
    let (go_on, tell) = nix::unistd::pipe().expect("a pipe");
    let child = Child::start(|| {
        assert_eq!(nix::unistd::read(&go_on, &mut [0]), Ok(1));
        act(attach(cx))
    });
    (child, tell)
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.remote.old-release-is-named", |cx| {
        let attached = open(cx, 4096).attach(PORT);
        let error = fails(attached, Operation::Attach, ErrorKind::Unsupported);
        assert!(error.help().is_some_and(|help| help.contains("NetBSD 10")));
        records(&mut open(cx, 4096));
    }),
    check("api.remote.unknown-source-is-refused", |cx| {
        for source in [Source::new(u64::MAX, 1), Source::vhci(0, 99)] {
            let error = open(cx, 4096).attach(source).expect_err("there is no such source");
            assert_eq!(error.kind(), ErrorKind::NoSuchSource);
            assert_eq!(error.path(), Some(cx.device()), "{error}");
        }
        records(&mut open(cx, 4096));
    }),
    on_crate("api.remote.attaching-a-traced-device-is-refused", 1, |_, mut device| {
        std::mem::forget(enable(&mut device));
        assert_eq!(kind(device.attach(PORT)), ErrorKind::AlreadyEnabled, "this thread is traced");
    }),
    check("api.remote.source-is-attached-once", |cx| {
        let attachment = attach(cx);
        let error = open(cx, 4096).attach(PORT).expect_err("attached already");
        // The kernel would allow this, so it was not asked.
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::SourceInUse, None));
        let device = open(cx, 4096);
        drop(open(cx, 1).attach(Source::vhci(0, BUSY)).expect("another source"));
        drop(attachment);
        let attachment = device.attach(PORT).expect("it is free again");
        drop(attachment.detach().attach(PORT).expect("and again"));
    }),
    check("api.remote.source-is-in-use-elsewhere", |cx| {
        let (other, tell) = another_process(cx, |mut attachment| {
            let said = format!("{:?}", kind(attachment.enable(TracePc)));
            // Dropping it would end the collection.
            std::mem::forget(attachment);
            said
        });
        let session = attach(cx).into_session(TracePc).expect("enabled");
        nix::unistd::write(&tell, &[0]).expect("it goes on");
        assert_eq!(other.end(), "SourceInUse");
        drop(session);
    }),
    check("api.remote.disabled-on-drop", |cx| {
        let mut attachment = attach(cx);
        drop(attachment.enable(TracePc).expect("enabled"));
        std::mem::forget(attachment.enable(TracePc).expect("disabled, so enabled again"));
        drop(attachment);
        let session = attach(cx).into_session(TracePc).expect("the leaked session has ended");
        drop(session);
        let session = attach(cx).into_session(TracePc).expect("one that owns has ended too");
        let attachment = session.disable().expect("disabled").into_owner();
        drop(attachment.into_session(TraceCmp).expect("another mode"));
    }),
    check("api.remote.ended-elsewhere-is-said", |cx| {
        let (other, tell) = another_process(cx, |attachment| {
            drop(attachment);
            String::new()
        });
        let mut attachment = attach(cx);
        let session = attachment.enable(TracePc).expect("enabled");
        nix::unistd::write(&tell, &[0]).expect("it goes on");
        other.end();
        assert_eq!(kind(session.disable()), ErrorKind::EndedElsewhere);
        drop(attachment.enable(TracePc).expect("it can begin again"));
    }),
    check("api.remote.session-belongs-to-no-thread", |cx| {
        let session = attach(cx).into_session(TracePc).expect("enabled");
        let attachment = thread(move || session.disable().expect("disabled").into_owner());
        let begin = || attachment.into_session(TracePc).expect("in a thread that has ended");
        let session = thread(begin);
        assert!(session.trace().is_empty());
        session.disable().expect("not ended elsewhere");
    }),
    on_crate("api.remote.local-and-remote-at-once", 4096, |cx, mut local| {
        let mut attachment = attach(cx);
        let remote_session = attachment.enable(TracePc).expect("enabled");
        let local_session = enable(&mut local);
        call();
        assert!(!local_session.disable().expect("disabled").trace().is_empty());
        let recorded = remote_session.disable().expect("disabled");
        assert!(recorded.trace().is_empty(), "nothing has appeared");
    }),
    check("api.remote.device-is-local-again", |cx| {
        let mut attachment = open(cx, 4096).attach(PORT).expect("attached");
        let session = attachment.enable(TracePc).expect("enabled");
        assert_eq!(session.trace().capacity(), (256 << 10) - 1);
        drop(session);
        let session = attachment.enable(TraceCmp).expect("enabled");
        assert_eq!(session.trace().capacity(), ((256 << 10) - 1) / 4);
        drop(session);
        let mut device = attachment.detach();
        assert_eq!(device.words(), 4096);
        records(&mut device);
        assert!(is_free(cx));
    }),
    check("api.remote.waiting-has-a-limit", |cx| {
        let session = attach(cx).into_session(TracePc).expect("enabled");
        let (limit, mark) = (Instant::now() + Duration::from_millis(50), session.mark());
        let wait = |until| session.wait(mark, 1, until).expect("its mark");
        assert!(wait(limit).is_empty());
        assert!(Instant::now() >= limit);
        assert!(wait(Instant::now()).is_empty());
    }),
    check("api.remote.mark-of-another-session-is-refused", |cx| {
        let mut other = open(cx, 1).attach(Source::vhci(0, BUSY)).expect("attached");
        let other = other.enable(TracePc).expect("enabled");
        let mut attachment = attach(cx);
        let first = attachment.enable(TracePc).expect("enabled").mark();
        let session = attachment.enable(TracePc).expect("enabled");
        for mark in [first, other.mark()] {
            assert!(session.since(mark).is_none());
            assert!(session.wait(mark, 1, deadline()).is_none());
        }
        assert!(session.since(session.mark()).is_some_and(|trace| trace.is_empty()), "its own");
    }),
    slow("api.remote.new-device-is-collected", 60, |cx| {
        let attachment = open(cx, 1).attach(Source::vhci(0, BUSY)).expect("attached");
        let mut session = attachment.into_session(TracePc).expect("enabled");
        let mark = session.mark();
        let comes = || session.wait(mark, 1, deadline()).is_some_and(|trace| !trace.is_empty());
        explored(0, BUSY.into(), || assert!(comes()));
        let (old, seen) = (session.mark(), session.trace().len());
        assert!(session.since(mark).is_some_and(|trace| trace.len() >= seen));
        session.restart().expect("enabled again");
        assert!(session.since(old).is_none(), "a mark of before the restart");
        session.disable().expect("not ended elsewhere");
    }),
];
