//! Sections that end late, as a session's cursors see them. A vhost worker stays in a section until
//! it gets a page that it reads.

use super::*;
use crate::linux::checks::remote::late::has_kick;
use crate::linux::checks::remote::vring;
use kcov::remote::RemoteSession;

const INSTANCE: u32 = 7;
/// The flush that waits for a section is another one, and may end a little later.
const QUIET: Duration = Duration::from_millis(50);

fn begin(device: Device) -> RemoteSession<TracePc> {
    device.into_remote_session(TracePc, &number(INSTANCE)).expect("enabled")
}

/// Returns a session, and a worker whose first sections have ended.
fn session(cx: &Context) -> (RemoteSession<TracePc>, Vring) {
    let session = begin(open(cx, 1 << 16));
    let vring = vring();
    vring.work();
    assert!(!all(&session).is_empty());
    (session, vring)
}

/// All records, when the sections have ended.
fn all(session: &RemoteSession<TracePc>) -> Vec<Pc> {
    assert!(session.settle(QUIET, deadline()));
    session.trace().iter().collect()
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.remote.late.mark-tells-late-from-early", |cx| {
        let (session, vring) = session(cx);
        for case in 0..3 {
            let before = all(&session);
            let first = session.mark();
            vring.begin();
            assert!(since(&session, first).is_empty(), "case {case}: it has not ended");
            let second = session.mark();
            assert_eq!(first, second, "nothing has come between them");
            vring.end();
            let all = all(&session);
            let late = since(&session, second);
            assert!(!late.is_empty() && late.completeness() == Completeness::Complete);
            let late: Vec<Pc> = late.iter().collect();
            assert_eq!(all, [before, late].concat(), "case {case}");
        }
    }),
    check("api.remote.late.each-mark-has-what-ended-after-it", |cx| {
        let (session, held) = session(cx);
        let other = vring();
        other.work();
        all(&session);
        let first = session.mark();
        held.begin();
        other.work();
        all(&session);
        let early: Vec<Pc> = since(&session, first).iter().collect();
        assert!(!early.is_empty(), "the other's section has ended");
        let second = session.mark();
        held.end();
        all(&session);
        let late: Vec<Pc> = since(&session, second).iter().collect();
        assert!(!late.is_empty(), "the first case's section has ended in the second");
        assert_eq!(since(&session, first).iter().collect::<Vec<_>>(), [early, late].concat());
    }),
    check("api.remote.late.restart-discards-it", |cx| {
        let (mut session, vring) = session(cx);
        let map = intruder(session.device());
        let handle = session.common_handle();
        vring.begin();
        session.restart().expect("enabled again");
        assert_eq!(session.common_handle(), handle, "the same handle");
        assert!(session.trace().is_empty());
        vring.end();
        assert!(!has_kick(&map), "of the section of before");
        vring.work();
        assert!(has_kick(&map), "of a section that began afterwards");
    }),
    check("api.remote.late.mark-before-a-restart-does-not-bring-it-back", |cx| {
        let (mut session, vring) = session(cx);
        let old = session.mark();
        vring.begin();
        let held = session.mark();
        session.restart().expect("enabled again");
        vring.end();
        // The flush is a section too.
        let count = all(&session).len();
        for mark in [old, held] {
            assert!(session.since(mark).is_none(), "nor does it give anything else");
        }
        let new = session.mark();
        assert!(since(&session, new).is_empty());
        vring.work();
        let whole = all(&session).len();
        assert_eq!(since(&session, new).len(), whole - count);
        assert!(!since(&session, new).is_empty());
    }),
    on_crate("api.remote.late.trace-of-a-disabled-session-stays", 1 << 16, |_, mut device| {
        let session = device.enable_remote(TracePc, &number(INSTANCE)).expect("enabled");
        let vring = vring();
        vring.work();
        vring.begin();
        let recorded = session.disable().expect("disabled");
        let trace = recorded.trace();
        let before: Vec<Pc> = trace.iter().collect();
        assert!(!before.is_empty());
        vring.end();
        assert_eq!(trace.iter().collect::<Vec<_>>(), before);
        assert_eq!(trace.len(), before.len());
    }),
    check("api.remote.late.next-session-is-without-it", |cx| {
        let (session, vring) = session(cx);
        vring.begin();
        let next = begin(session.disable().expect("disabled").into_owner());
        let map = intruder(next.device());
        assert!(next.trace().is_empty(), "it begins with an empty trace");
        vring.end();
        assert!(!has_kick(&map), "of the session before");
        vring.work();
        assert!(has_kick(&map), "its own");
    }),
    check("api.remote.late.local-session-is-without-it", |cx| {
        let (session, vring) = session(cx);
        vring.begin();
        let mut device = session.disable().expect("disabled").into_owner();
        let map = intruder(&device);
        let session = enable(&mut device);
        call();
        vring.end();
        assert!(!session.disable().expect("disabled").trace().is_empty(), "the thread's own");
        assert!(!has_kick(&map), "none of the worker");
    }),
    check("api.remote.late.dropped-device-lives-until-it-ends", |cx| {
        let (session, vring) = session(cx);
        vring.begin();
        drop(session);
        // The handle is free, and later sections of the worker belong to the new session.
        let next = begin(open(cx, 1 << 16));
        let mark = next.mark();
        vring.end();
        vring.work();
        assert!(!since(&next, mark).is_empty());
    }),
];
