//! Comparison operands, and file descriptors, threads, processes and programs in comparison mode.

pub(crate) mod operands;

use super::pc::WORKLOAD;
use super::*;
use crate::checks::shared::thread::added_records;
use crate::system::checks::calls::{
    CASES, MAGIC, NEGATIVE, compare_argument, switch_over_argument,
};
use kcov_sys::linux::{KCOV_CMP_CONST, KCOV_CMP_MASK, KCOV_WORDS_PER_CMP, kcov_cmp_size};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) kind: u64,
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) address: u64,
}

impl Comparison {
    fn is_const(self) -> bool {
        self.kind & KCOV_CMP_CONST != 0
    }

    fn size_bits(self) -> u64 {
        self.kind & KCOV_CMP_MASK
    }
}

fn comparisons(map: &Map, traced: impl Fn()) -> Vec<Comparison> {
    map.reset();
    traced();
    let words = super::index(map.count()) * KCOV_WORDS_PER_CMP;
    assert!(words < map.words(), "the buffer has room");
    let record = |words: &[u64]| {
        let &[kind, first, second, address] = words else { unreachable!("four words") };
        Comparison { kind, first, second, address }
    };
    map.copy(1, words).chunks_exact(KCOV_WORDS_PER_CMP).map(record).collect()
}

/// The buffer after one call. All other words are still all ones, which is no valid type.
fn marked(cx: &Context) -> Map {
    let (device, map) = collecting(cx, KCOV_TRACE_CMP);
    mark(&map, u64::MAX);
    map.reset();
    call();
    device.disable().expect("disabled");
    map
}

pub(crate) fn collect(cx: &Context, traced: impl Fn()) -> Vec<Comparison> {
    let (device, map) = collecting(cx, KCOV_TRACE_CMP);
    let found = comparisons(&map, traced);
    device.disable().expect("disabled");
    found
}

/// Panics unless this thread's calls are recorded as comparisons.
#[track_caller]
pub(crate) fn collects(map: &Map) {
    assert!(is_traced(map), "this thread is traced");
    // The first word is the type of the first record.
    assert!(map.load(1) < 8, "{:#x}", map.load(1));
}

pub(crate) const CHECKS: &[Check] = &[
    check("cmp.operands-are-collected", |cx| {
        let found = collect(cx, || compare_argument(MAGIC));
        let magic = |c: &&Comparison| [c.first, c.second].contains(&u64::from(MAGIC));
        assert!(found.iter().any(|c| magic(&c)), "{MAGIC:#x} is not in {found:#x?}");
        let found = collect(cx, call);
        assert!(!found.iter().any(|c| magic(&c)), "{MAGIC:#x} was not passed, yet in {found:#x?}");
    }),
    check("cmp.count-is-of-comparisons", |cx| {
        let map = marked(cx);
        let count = super::index(map.count());
        let starts = (1..map.words()).step_by(KCOV_WORDS_PER_CMP);
        assert_eq!(starts.take_while(|&word| map.load(word) != u64::MAX).count(), count);
        assert!(count > 0);
    }),
    check("cmp.four-words-per-comparison", |cx| {
        let map = marked(cx);
        let count = super::index(map.count());
        assert!(count > 0);
        are_comparisons(&map.copy(1, count * 4));
        let behind = map.copy(1 + count * 4, map.words() - 1 - count * 4);
        assert!(behind.iter().all(|&word| word == u64::MAX), "nothing stands behind the last");
    }),
    check("cmp.type-has-three-bits", |cx| {
        let mut found = collect(cx, switch_over_argument);
        found.extend(collect(cx, call));
        for comparison in &found {
            assert_eq!(comparison.kind & !(KCOV_CMP_CONST | KCOV_CMP_MASK), 0, "{comparison:#x?}");
        }
        let kinds: BTreeSet<_> = found.iter().map(|comparison| comparison.kind).collect();
        assert!(kinds.len() > 1, "one kind only, {kinds:?}, shows nothing");
    }),
    check("cmp.operands-are-zero-extended", |cx| {
        let mut found = collect(cx, switch_over_argument);
        found.extend(collect(cx, call));
        found.extend(NEGATIVE.iter().flat_map(|&traced| collect(cx, traced)));
        let mut narrow = 0;
        for comparison in found {
            let bits = 8 << (comparison.size_bits() >> 1);
            let fits = |operand: u64| bits == 64 || operand >> bits == 0;
            // The compiler stores a negative case of a switch sign-extended.
            let case =
                comparison.is_const() && bits < 64 && comparison.first >= u64::MAX << (bits - 1);
            assert!(fits(comparison.second), "{comparison:#x?}");
            assert!(fits(comparison.first) || case, "{comparison:#x?}");
            narrow += usize::from(bits < 64);
        }
        assert!(narrow > 0, "comparisons narrower than a word");
    }),
    check("cmp.address-is-the-caller", |cx| {
        let mut seen: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for traced in [&[switch_over_argument as fn()], WORKLOAD].concat() {
            for comparison in collect(cx, traced) {
                seen.entry(comparison.kind).or_default().insert(comparison.address);
            }
        }
        let sites = sites();
        let mut places = 0;
        for (kind, seen) in seen {
            let bytes = 1 << ((kind & KCOV_CMP_MASK) >> 1);
            let callers = sites.comparisons(bytes, kind & KCOV_CMP_CONST != 0);
            let others: Vec<_> = seen.iter().filter(|place| !callers.contains(place)).collect();
            assert!(others.is_empty(), "behind no call of the hook of type {kind}: {others:#x?}");
            places += seen.len();
        }
        assert!(places > 100, "only {places} places show little");
    }),
    check("cmp.constant-comes-first", |cx| {
        let found = collect(cx, || compare_argument(MAGIC));
        let has_magic = |c: &&Comparison| [c.first, c.second].contains(&u64::from(MAGIC));
        let magic: Vec<_> = found.iter().filter(|c| c.is_const()).filter(has_magic).collect();
        assert!(!magic.is_empty(), "{MAGIC:#x} was compared with no constant: {found:#x?}");
        for comparison in magic {
            assert_eq!(comparison.second, u64::from(MAGIC), "{comparison:#x?}");
        }
    }),
    check("cmp.switch-gives-one-record-per-case", |cx| {
        let found = collect(cx, switch_over_argument);
        let of_switch =
            |c: &&Comparison| c.second == u64::from(MAGIC) && c.size_bits() == kcov_cmp_size(2);
        let cases: Vec<_> = found.iter().filter(of_switch).collect();
        assert!(cases.iter().all(|c| c.is_const()), "{cases:#x?}");
        // The switch is the site with the most records.
        let at = |address: u64| cases.iter().filter(|c| c.address == address).collect::<Vec<_>>();
        let switch = cases.iter().map(|c| at(c.address)).max_by_key(Vec::len).expect("a record");
        let values: BTreeSet<_> = switch.iter().map(|c| c.first).collect();
        assert_eq!(values.len(), switch.len(), "each case once");
        for case in CASES {
            assert!(values.contains(case), "case {case} is not in {values:?}");
        }
    }),
    on_buffer("cmp.same-call-same-number", collecting_cmp, |_, _device, map| {
        let mut counts: Vec<_> = (0..64).map(|_| comparisons(&map, call).len()).collect();
        counts.sort_unstable();
        let usual = counts[counts.len() / 2];
        let same = counts.iter().filter(|&&count| count == usual).count();
        assert!(usual > 0 && same >= counts.len() / 2, "{counts:?}");
    }),
    on_buffer("cmp.life.devices-are-independent", collecting_cmp, |cx, first, map| {
        map.reset();
        let (second, other) = mapped(cx);
        drop(open(cx));
        assert!(map.count() > 0, "opening is recorded by the device that is enabled");
        collects(&map);
        assert!(is_zero(&other), "and by no other");
        first.disable().expect("disabled");
        second.enable(KCOV_TRACE_CMP).expect("enabled");
        map.reset();
        collects(&other);
        assert_eq!(map.count(), 0);
    }),
    on_buffer("cmp.life.through-other-descriptors", mapped, |_, device, map| {
        let duplicate = device.duplicate().expect("a duplicate");
        let mut moved = std::fs::File::open("/dev/null").expect("a descriptor").into();
        dup2(&device, &mut moved).expect("dup2");
        let moved = Device::from(moved);
        duplicate.enable(KCOV_TRACE_CMP).expect("enabled");
        collects(&map);
        device.close().expect("closed");
        duplicate.close().expect("closed");
        collects(&map);
        assert_eq!(moved.disable(), Ok(()));
        moved.enable(KCOV_TRACE_CMP).expect("enabled");
        collects(&map);
        assert_eq!(moved.disable(), Ok(()));
        assert_eq!(moved.close(), Ok(()));
    }),
    on_buffer("cmp.life.end-of-the-thread-disables", mapped, |_, device, map| {
        thread(|| {
            device.enable(KCOV_TRACE_CMP).expect("enabled");
            collects(&map);
        });
        assert_eq!(added_records(&map, 4), 0);
        assert_eq!(enable_freed(&device, KCOV_TRACE_CMP), Ok(()), "nobody has it enabled");
        collects(&map);
    }),
    on_buffer("cmp.life.forked-child-enables-what-it-inherits", mapped, |_, device, map| {
        let (count, first): (u64, Vec<u64>) = child(|| {
            device.enable(KCOV_TRACE_CMP).expect("enabled");
            collects(&map);
            let seen = (map.count(), map.copy(1, 4));
            device.disable().expect("disabled");
            seen
        });
        map.holds_comparisons();
        assert!(map.count() >= count, "the parent sees the child's count");
        assert_eq!(map.copy(1, 4), first, "and its records");
    }),
    on_buffer("cmp.life.process-may-end-while-enabled", mapped, |cx, device, map| {
        child(|| {
            device.enable(KCOV_TRACE_CMP).expect("enabled");
            collects(&map);
        });
        // The child's own file descriptors are closed when it ends, or before.
        child(|| std::mem::forget(collecting(cx, KCOV_TRACE_CMP)));
        child(|| {
            let (device, map) = collecting(cx, KCOV_TRACE_CMP);
            device.close().expect("closed");
            std::mem::forget(map);
        });
        assert_eq!(enable_freed(&device, KCOV_TRACE_CMP), Ok(()));
        collects(&map);
        device.disable().expect("disabled");
        assert_eq!(sized(cx, COVER_SIZE).enable(KCOV_TRACE_CMP), Ok(()));
    }),
];
