//! Reading synthetic buffers, and arbitrary words.

use super::*;
use crate::mode::{TraceCmp, TracePc};
use crate::{Pc, Trace};
use proptest::prelude::*;
use std::sync::atomic::AtomicU64;

fn words(words: impl IntoIterator<Item = u64>) -> Vec<AtomicU64> {
    words.into_iter().map(AtomicU64::new).collect()
}

const ENTRY: u64 = 0x00ff_ffff_8123_4560;
const EXIT: u64 = 0x10ff_ffff_8123_4570;
const NORMAL: u64 = 0xffff_ffff_8123_4568;

fn tree(words: &[u64]) -> Vec<(usize, Event)> {
    let records = words.iter().copied().map(ExtendedPc::from_word);
    CallTree::new(records).map(|step| (step.depth, step.event)).collect()
}

#[test]
fn a_record_says_what_and_where() {
    for (word, kind, address) in [
        (ENTRY, RecordKind::Entry, 0xffff_ffff_8123_4560),
        (EXIT, RecordKind::Exit, 0xffff_ffff_8123_4570),
        (NORMAL, RecordKind::Normal, NORMAL),
        // Only the type bits of the top byte matter.
        (NORMAL & !(0xf << 56), RecordKind::Normal, NORMAL),
        (ENTRY | 0x0f << 56, RecordKind::Entry, 0xffff_ffff_8123_4560),
        (0x20ff_ffff_8123_4570, RecordKind::Unknown(2), 0xffff_ffff_8123_4570),
        // Addresses in the lower half.
        (0x0000_0000_6000_1000, RecordKind::Entry, 0x6000_1000),
        (0x1000_0000_6000_1000, RecordKind::Exit, 0x6000_1000),
        (0xf000_0000_6000_1000, RecordKind::Normal, 0x6000_1000),
    ] {
        let record = ExtendedPc::from_word(word);
        assert_eq!((record.kind(), record.pc()), (kind, Pc::new(address)), "{word:#x}");
        assert_eq!(record.word(), word);
    }
}

#[test]
fn extended_records_are_read_like_others() {
    let buffer = words([3, ENTRY, NORMAL, EXIT]);
    let trace = Trace::from_words(&buffer, TracePcExt(()));
    assert_eq!((trace.len(), trace.capacity(), trace.is_truncated()), (3, 3, true));
    let kinds: Vec<_> = trace.iter().map(ExtendedPc::kind).collect();
    assert_eq!(kinds, [RecordKind::Entry, RecordKind::Normal, RecordKind::Exit]);
}

#[test]
fn calls_within_calls() {
    let (entry, exit) = (|pc| Event::Enter(Pc::new(pc)), |pc| Event::Leave(Pc::new(pc)));
    let within = |word| Event::Within(ExtendedPc::from_word(word));
    let block = 0xf000_0000_0000_0011;
    let unknown = 0x3000_0000_0000_0012;
    let leave = |pc: u64| 0x1000_0000_0000_0000 | pc;
    assert_eq!(
        tree(&[0x10, block, 0x20, leave(0x28), unknown, leave(0x18)]),
        [
            (0, entry(0x10)),
            (1, within(block)),
            (1, entry(0x20)),
            (1, exit(0x28)),
            (1, within(unknown)),
            (0, exit(0x18)),
        ]
    );
    // Two functions are left that were entered before, and one is never left.
    assert_eq!(
        tree(&[leave(0x8), 0x10, leave(0x18), leave(0x9), 0x20, block]),
        [
            (1, exit(0x8)),
            (1, entry(0x10)),
            (1, exit(0x18)),
            (0, exit(0x9)),
            (0, entry(0x20)),
            (1, within(block)),
        ]
    );
}

#[test]
fn what_is_open_is_counted() {
    let records = [EXIT, EXIT, ENTRY, ENTRY, ENTRY, EXIT].map(ExtendedPc::from_word);
    let mut tree = CallTree::new(records);
    assert_eq!(tree.open(), 2);
    assert_eq!(tree.by_ref().count(), 6);
    assert_eq!(tree.open(), 2);
    assert_eq!(tree.next(), None);
}

#[test]
fn edges_are_hashed_pairs() {
    let edge = |first, second| Edge::between(Pc::new(first), Pc::new(second)).value();
    assert_eq!(edge(0, 0xffff_ffff_8100_0abc), 0xffff_ffff_8100_0abc);
    assert_eq!(edge(1, 0x1000), 0x13eb);
    assert_eq!(edge(0xffff_ffff_8100_0001, 0x1000), 0x13eb, "the low bits of the first count");
    assert_ne!(edge(1, 2), edge(2, 1));
}

#[test]
fn proposals_hand_out_modes() {
    let none = Proposals::default();
    assert_eq!(none.to_string(), "");
    assert!(none.trace_pc_ext().is_none() && none.uniq_pc().is_none());
    assert!(none.uniq_edge().is_none() && none.uniq_cmp().is_none() && none.unique().is_none());
    let known = Proposals { extended_records: Presence::NotBuiltIn, ..none };
    assert!(known.trace_pc_ext().is_none());
    assert_eq!(known.to_string(), "extended records (not built in)");
    let uniq = Proposals { unique_modes: Presence::Present, ..none };
    assert!(uniq.uniq_pc().is_some() && uniq.uniq_edge().is_some());
    assert!(uniq.uniq_cmp().is_none() && uniq.trace_pc_ext().is_none());
    assert_eq!(uniq.to_string(), "unique modes");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 32 } else { 1024 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Any words make a trace and a tree, and none of them is lost.
    #[test]
    fn any_words_decode(
        raw in prop::collection::vec(any::<u64>(), 1..40),
        count in prop::option::of(0_u64..50),
    ) {
        let mut raw = raw;
        raw[0] = count.unwrap_or(raw[0]);
        let buffer = words(raw.iter().copied());
        let records = &raw[1..];
        // A count that the buffer cannot hold gives no record.
        let length = usize::try_from(raw[0]).ok().filter(|count| *count <= records.len());

        let trace = Trace::from_words(&buffer, TracePcExt(()));
        let read: Vec<u64> = trace.iter().map(ExtendedPc::word).collect();
        prop_assert_eq!(&read, &records[..length.unwrap_or(0)]);
        let pcs = Trace::from_words(&buffer, UniqPc(()));
        prop_assert!(pcs.iter().eq(Trace::from_words(&buffer, TracePc).iter()));
        prop_assert_eq!(pcs.capacity(), trace.capacity());
        let comparisons = Trace::from_words(&buffer, UniqCmp(()));
        prop_assert!(comparisons.iter().eq(Trace::from_words(&buffer, TraceCmp).iter()));
        prop_assert_eq!(comparisons.completeness(), Trace::from_words(&buffer, TraceCmp).completeness());

        let tree = CallTree::new(trace.iter());
        let (mut open, mut shallowest) = (tree.open(), tree.open());
        for (step, record) in tree.zip(trace.iter()) {
            let (depth, pc) = match step.event {
                Event::Enter(pc) => { open += 1; (open - 1, pc) }
                Event::Leave(pc) => { open -= 1; (open, pc) }
                Event::Within(within) => (open, within.pc()),
            };
            prop_assert_eq!((step.depth, pc), (depth, record.pc()));
            shallowest = shallowest.min(step.depth);
        }
        prop_assert_eq!(shallowest, 0, "the shallowest place is where depth begins");
    }
}
