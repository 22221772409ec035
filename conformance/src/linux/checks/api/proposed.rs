//! The proposals for Linux, through the safe crate.

use super::*;
use crate::feature::Feature;
use kcov::Words;
use kcov::proposed::{
    CallTree, Edge, EdgeDevice, Event, Presence, Proposals, RecordKind, UniqueEnable,
};
use kcov::remote::linux::Remote;

pub(super) fn proposals(cx: &Context) -> Proposals {
    Modes::probe_path(cx.device()).expect("it works").proposals()
}

/// The number of bits set in a bitmap.
fn bits(bitmap: Words<'_>) -> u32 {
    let words = (0..bitmap.len()).filter_map(|index| bitmap.get(index));
    words.map(u64::count_ones).sum()
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.proposed.probing-finds-what-the-kernel-has", |cx| {
        // The raw probes' answers. Each probe runs in its own thread, whose end also
        // ends its tracing.
        let has = |feature| crate::raw::thread(|| probe(feature, cx.device())).expect("an answer");
        let presence = |there, not_built: Option<Feature>| {
            if has(there) {
                Presence::Present
            } else if not_built.is_some_and(has) {
                Presence::NotBuiltIn
            } else {
                Presence::Absent
            }
        };
        let found = proposals(cx);
        let extended = presence(Feature::TracePcExt, Some(Feature::TracePcExtNotBuilt));
        assert_eq!(found.extended_records(), extended);
        assert_eq!(found.unique_modes(), presence(Feature::UniqModes, None));
        let enable = presence(Feature::UniqueEnable, Some(Feature::UniqueEnableNotBuilt));
        assert_eq!(found.unique_enable(), enable);
        assert_eq!(found.trace_pc_ext().is_some(), extended == Presence::Present);
        assert_eq!(found.unique().is_some(), enable == Presence::Present);
        assert_eq!(found.uniq_pc().is_some(), found.uniq_edge().is_some());
    }),
    check("api.proposed.probing-leaves-nothing-behind", |cx| {
        let next = || std::fs::File::open("/dev/null").expect("a file").as_raw_fd();
        let before = next();
        let first = proposals(cx);
        let mut device = open(cx, 1 << 16);
        let mut session = enable(&mut device);
        assert_eq!(proposals(cx), first, "also while traced");
        session.reset();
        call();
        let recorded = session.disable().expect("still enabled");
        let trace = recorded.trace();
        assert!(!trace.is_empty() && !trace.is_truncated());
        drop(device);
        assert!(is_free(cx));
        assert_eq!(next(), before);
    }),
    check("api.proposed.extended-session", |cx| {
        let mode = proposals(cx).trace_pc_ext().expect("the mode");
        let mut device = open(cx, 1 << 16);
        let balanced = || {
            let recorded = of_a_call(device.enable(mode).expect("enabled"));
            let trace = recorded.trace();
            let count = |kind| trace.iter().filter(|record| record.kind() == kind).count();
            let (entries, exits) = (count(RecordKind::Entry), count(RecordKind::Exit));
            assert!(entries > 1 && count(RecordKind::Normal) > 0);
            assert_eq!(trace.mode(), mode);
            let mut tree = CallTree::new(trace.iter());
            let begins_at_top = tree.open() == 0;
            let first = tree.by_ref().next().map(|step| step.event);
            let deepest = tree.by_ref().map(|step| step.depth).max();
            // The trace ends before the disable request, so every function entered was also left.
            begins_at_top
                && matches!(first, Some(Event::Enter(_)))
                && deepest > Some(1)
                && tree.open() == 0
                && entries == exits
        };
        assert!(at_times(balanced), "no call is balanced");
    }),
    check("api.proposed.extended-is-truncated", |cx| {
        let mode = proposals(cx).trace_pc_ext().expect("the mode");
        let mut device = open(cx, 1);
        let session = device.enable(mode).expect("enabled");
        // Nests deeper than the point where the buffer becomes full, wherever that is.
        let _ = std::fs::read_to_string("/proc/self/status").expect("a file");
        let recorded = session.disable().expect("disabled");
        let trace = recorded.trace();
        assert!(trace.is_truncated());
        let tree = CallTree::new(trace.iter());
        assert_eq!(tree.clone().count(), trace.len());
        assert_eq!(tree.map(|step| step.depth).min(), Some(0));
    }),
    check("api.proposed.unique-sessions", |cx| {
        let found = proposals(cx);
        let (pc, cmp) = (found.uniq_pc().expect("the mode"), found.uniq_cmp().expect("the mode"));
        let mut device = open(cx, 1 << 16);
        let mut session = device.enable(pc).expect("enabled");
        (0..50).for_each(|_| call());
        let records: Vec<_> = session.trace().iter().collect();
        let distinct: BTreeSet<_> = records.iter().collect();
        assert!(records.len() > 2 && distinct.len() == records.len(), "{} PCs", records.len());
        let nothing = || {
            session.reset();
            call();
            session.trace().is_empty()
        };
        assert!(at_times(nothing), "recorded again");
        drop(session);

        let mut device = open(cx, 1 << 16);
        let session = device.enable(cmp).expect("enabled");
        (0..50).for_each(|_| call());
        let recorded = session.disable().expect("disabled");
        let trace = recorded.trace();
        let all: Vec<_> = trace.iter().collect();
        let mut distinct = std::collections::HashSet::new();
        assert!(!all.is_empty() && all.iter().all(|comparison| distinct.insert(*comparison)));
    }),
    check("api.proposed.edge-session", |cx| {
        let token = proposals(cx).uniq_edge().expect("the mode");
        let mut device = EdgeDevice::new(open(cx, 1 << 16), token).expect("mapped");
        let session = device.enable().expect("enabled");
        call();
        let (pcs, edges) = session.disable().expect("disabled");
        assert!(pcs.is_empty() && !edges.is_empty());
        assert_eq!(edges.completeness(), Completeness::Complete);
        let distinct: BTreeSet<Edge> = edges.iter().collect();
        assert_eq!(distinct.len(), edges.len());

        let mut device = EdgeDevice::new(open(cx, 1 << 16), token).expect("mapped");
        let session = device.enable_with_pcs().expect("enabled");
        call();
        let (pcs, edges) = session.disable().expect("disabled");
        assert!(!pcs.is_empty() && !edges.is_empty());
        // An edge equals its second block except for the lowest 12 bits. Blocks recorded before the
        // session was reset are not recorded again, so some edges lack their block here.
        let pages: BTreeSet<u64> = pcs.iter().map(|pc| pc.address() >> 12).collect();
        let known = edges.iter().filter(|edge| pages.contains(&(edge.value() >> 12))).count();
        assert!(known > edges.len() / 2, "{known} of {}", edges.len());
    }),
    check("api.proposed.edge-session-keeps-the-thread-rules", |cx| {
        let token = proposals(cx).uniq_edge().expect("the mode");
        let mut edges = EdgeDevice::new(open(cx, 1), token).expect("mapped");
        let mut other = open(cx, 1);
        let session = enable(&mut other);
        assert_eq!(kind(edges.enable()), ErrorKind::AlreadyEnabled);
        drop(session);
        let session = edges.enable().expect("enabled");
        assert_eq!(kind(other.enable(TracePc)), ErrorKind::AlreadyEnabled);
        drop(session);
        assert!(is_free(cx));
        std::mem::forget(edges.enable_with_pcs().expect("enabled"));
        let mut device = edges.into_device();
        assert_eq!(kind(device.enable(TracePc)), ErrorKind::AlreadyEnabled);
        drop(device);
        assert!(is_free(cx), "a leaked session ends with its device");
    }),
    check("api.proposed.bitmap-session", |cx| {
        const BITMAP: usize = 1 << 15;
        let unique = proposals(cx).unique().expect("the request");
        let mut device = open(cx, 1 << 16);
        let mut session = unique.enable(&mut device, BITMAP).expect("enabled");
        for _ in 0..3 {
            (0..20).for_each(|_| call());
            let records: Vec<_> = session.trace().iter().collect();
            let distinct: BTreeSet<_> = records.iter().collect();
            assert!(records.len() > 2 && distinct.len() == records.len(), "{} PCs", records.len());
            assert!(bits(session.bitmap()) > 2);
            let nothing = || {
                session.reset_count();
                call();
                session.trace().is_empty()
            };
            assert!(at_times(nothing), "recorded again");
            session.reset();
        }
        session.request_reset().expect("reset");
        call();
        let trace = session.disable().expect("disabled");
        assert!(trace.len() > 2 && trace.capacity() == (1 << 16) - BITMAP - 1);

        let mut session = device.enable(TracePc).expect("the whole buffer again");
        (0..50).for_each(|_| call());
        let before = session.trace().len();
        unique.reset_trace(&mut session).expect("reset");
        assert!(session.trace().len() < before);
    }),
    check("api.proposed.bitmap-size-is-checked", |cx| {
        let unique: UniqueEnable = proposals(cx).unique().expect("the request");
        let mut device = open(cx, 1);
        let words = device.words();
        for bitmap in [0, words - 1, words, usize::MAX] {
            let error = unique.enable(&mut device, bitmap).expect_err("out of limits");
            assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::SizeOutOfLimits, None));
            assert!(error.to_string().contains(&format!("1 to {} words", words - 2)), "{error}");
        }
        let session = unique.enable(&mut device, words - 2).expect("the largest");
        call();
        let trace = session.disable().expect("disabled");
        assert_eq!((trace.len(), trace.capacity(), trace.is_truncated()), (1, 1, true));
    }),
    check("api.proposed.bitmap-session-keeps-the-thread-rules", |cx| {
        let unique = proposals(cx).unique().expect("the request");
        let (mut device, mut other) = (open(cx, 1), open(cx, 1));
        let session = enable(&mut other);
        assert_eq!(kind(unique.enable(&mut device, 8)), ErrorKind::AlreadyEnabled);
        drop(session);
        let session = unique.enable(&mut device, 8).expect("enabled");
        assert_eq!(kind(other.enable(TracePc)), ErrorKind::AlreadyEnabled);
        drop(session);
        assert!(is_free(cx));
        std::mem::forget(unique.enable(&mut device, 8).expect("enabled"));
        drop(device);
        assert!(is_free(cx), "a leaked session ends with its device");
        let raw = Raw::open(cx.device()).expect("the device opens");
        assert!(raw.reset_trace().is_err());
    }),
    check("api.proposed.once-is-not-for-remote-coverage", |cx| {
        let found = proposals(cx);
        let mut device = open(cx, 1);
        let refused = device.enable_remote(found.uniq_pc().expect("the mode"), &Remote::new());
        assert_eq!(kind(refused), ErrorKind::Unsupported);
        let refused = device.enable_remote(found.uniq_cmp().expect("the mode"), &Remote::new());
        assert_eq!(kind(refused), ErrorKind::Unsupported);
    }),
];
