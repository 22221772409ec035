//! Which case the records of a section count for. The sections are those of vhost and io_uring
//! workers, and end when a check says so.

use super::*;
use crate::linux::checks::remote::vhost;
use kcov::remote::{RemoteSession, linux::Remote};

/// A worker reports that its work is done shortly before the section ends.
const QUIET: Duration = Duration::from_millis(50);

fn session(cx: &Context) -> RemoteSession<TracePc> {
    let session = open(cx, 1 << 16).into_remote_session(TracePc, &Remote::new().any_common());
    session.expect("enabled")
}

/// Makes the worker work, and waits until all of its sections have ended.
fn works(vhost: &Vhost, session: &RemoteSession<TracePc>) {
    let mark = session.mark();
    vhost.work();
    assert!(!wait(session, mark, 1).is_empty() && session.settle(QUIET, deadline()));
}

/// Begins a section that a worker stays in until it gets its byte.
fn late() -> Copies {
    Copies::held().expect("a ring")
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.remote.sections.marks-tell-cases-apart", |cx| {
        let session = session(cx);
        let vhost = vhost();
        // The worker's first sections belong to its start.
        works(&vhost, &session);
        let mut before: Vec<Pc> = session.trace().iter().collect();
        for case in 0..5 {
            let mark = session.mark();
            assert!(since(&session, mark).is_empty(), "case {case}: nothing of the case before");
            works(&vhost, &session);
            let trace = since(&session, mark);
            assert!(!trace.is_empty() && trace.completeness() == Completeness::Complete);
            // Earlier records are still there, and do not appear again.
            let all: Vec<Pc> = session.trace().iter().collect();
            assert_eq!(all[..before.len()], before);
            assert_eq!(all[before.len()..], trace.iter().collect::<Vec<_>>());
            before = all;
        }
        assert_eq!(session.disable().expect("disabled").into_owner().words(), 1 << 16);
    }),
    check("api.remote.sections.old-mark-is-refused", |cx| {
        let mut session = session(cx);
        let vhost = vhost();
        works(&vhost, &session);
        let first = session.mark();
        works(&vhost, &session);
        let second = session.mark();
        let since_first = since(&session, first).len();
        assert!(since_first > 0 && since(&session, second).is_empty());
        assert_eq!(wait(&session, first, since_first).len(), since_first);
        session.restart().expect("enabled again");
        // The vhost worker inherited the handle, which is enabled again.
        works(&vhost, &session);
        assert!(!session.trace().is_empty());
        let other = crate::raw::thread(|| self::session(cx).mark());
        for mark in [first, second, other] {
            assert!(session.since(mark).is_none(), "of before the restart, or of another session");
            assert!(session.wait(mark, 1, deadline()).is_none());
        }
    }),
    check("api.remote.sections.late-section-counts-for-the-next-case", |cx| {
        let session = session(cx);
        let first = session.mark();
        let late = late();
        assert!(since(&session, first).is_empty(), "it has not ended");
        let second = session.mark();
        late.give();
        late.complete();
        assert!(!wait(&session, second, 1).is_empty(), "it counts when it ends");
    }),
    check("api.remote.sections.restart-discards-what-runs", |cx| {
        let mut session = session(cx);
        let handle = session.common_handle();
        let late = late();
        session.restart().expect("enabled again");
        assert_eq!(session.common_handle(), handle, "the same handle");
        let mark = session.mark();
        late.give();
        late.complete();
        assert!(session.settle(QUIET, deadline()));
        assert!(session.trace().is_empty(), "of the section of before");
        late.begin();
        late.complete();
        assert!(!wait(&session, mark, 1).is_empty(), "of a section that began afterwards");
    }),
    on_crate("api.remote.sections.restart-after-a-full-buffer", 1, |_, device| {
        let map = intruder(&device);
        let session = device.into_remote_session(TracePc, &Remote::new().any_common());
        let mut session = session.expect("enabled");
        let vhost = vhost();
        for _ in 0..map.words() {
            if session.trace().is_truncated() {
                break;
            }
            vhost.work();
        }
        assert!(session.trace().is_truncated());
        session.restart().expect("enabled again");
        let mark = session.mark();
        assert_eq!((session.trace().len(), map.count()), (0, 0));
        vhost.work();
        assert!(!since(&session, mark).is_empty());
        // A count that no driver stores does not prevent a restart either.
        map.store(0, u64::MAX);
        assert!(matches!(session.trace().completeness(), Completeness::Corrupt { .. }));
        session.restart().expect("enabled again");
        vhost.work();
        assert!(!session.trace().is_empty());
    }),
    check("api.remote.sections.settles-when-all-is-quiet", |cx| {
        let session = session(cx);
        assert!(session.settle(Duration::ZERO, deadline()));
        let vhost = vhost();
        vhost.work();
        assert!(session.settle(QUIET, deadline()));
        let (mark, seen) = (session.mark(), session.trace().len());
        assert!(seen > 0);
        assert!(since(&session, mark).is_empty());
        vhost.work();
        assert!(session.settle(QUIET, deadline()) && session.trace().len() > seen);
        // The deadline ends the wait before the quiet time does.
        assert!(!session.settle(Duration::MAX, Instant::now() + Duration::from_millis(1)));
    }),
    check("api.remote.sections.any-common-is-free-everywhere", |cx| {
        const OTHERS: usize = 8;
        // Threads and processes pick handles at the same time without knowing of each other.
        let mine = session(cx);
        let handle = mine.common_handle().expect("one was found").raw();
        let (gate_out, gate_in) = nix::unistd::pipe().expect("a pipe");
        let by_child = || {
            let session = session(cx);
            let handle = session.common_handle().expect("one was found").raw();
            vhost().work();
            assert!(!session.trace().is_empty(), "its own work");
            // The child keeps its handle until all others have one.
            let _ = read(&gate_out, &mut [0]);
            handle
        };
        let children: Vec<Child<u64>> = (0..OTHERS).map(|_| Child::start(by_child)).collect();
        let gate = std::sync::Barrier::new(OTHERS);
        let by_threads: Vec<u64> = std::thread::scope(|scope| {
            let one = || {
                let session = session(cx);
                gate.wait();
                session.common_handle().expect("one was found").raw()
            };
            let threads: Vec<_> = (0..OTHERS).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().expect("the thread")).collect()
        });
        nix::unistd::write(&gate_in, &[0; OTHERS]).expect("they may go on");
        let by_children = children.into_iter().map(Child::end);
        let all: HashSet<u64> = by_children.chain(by_threads).chain([handle]).collect();
        assert_eq!(all.len(), 2 * OTHERS + 1, "{all:x?}");
    }),
    check("api.remote.sections.owned-session-gives-the-device-back", |cx| {
        let session = session(cx);
        let taken = Remote::new().common(session.common_handle().expect("one was found"));
        let refused =
            || crate::raw::thread(|| kind(open(cx, 1).into_remote_session(TracePc, &taken)));
        assert_eq!(refused(), ErrorKind::HandleInUse);
        vhost().work();
        assert!(!session.trace().is_empty());
        let mut device = session.disable().expect("disabled").into_owner();
        drop(device.enable_remote(TracePc, &number(3)).expect("remote again"));
        let local = device.enable(TracePc).expect("local now");
        call();
        assert!(!local.trace().is_empty());
        drop(local);
        drop(device.into_remote_session(TracePc, &taken).expect("the handle is free"));
    }),
];
