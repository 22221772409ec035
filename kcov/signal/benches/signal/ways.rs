//! The ways to check a trace, on one case, side by side.

use crate::peers::{ByteMap, Syzkaller};
use kcov::Trace;
use kcov::mode::TracePc;
use kcov_signal::{NoveltyMap, Ranges};
use rustc_hash::FxHashSet;
use std::hint::black_box;
use std::slice;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// A trace, and the PCs seen before it.
pub struct Case {
    pub name: String,
    pub ranges: Ranges,
    pub known: Vec<u64>,
    pub trace: Vec<u64>,
}

/// A way to check it. Ways that name new PCs push them to a vector, which is empty before.
pub type Way<'c> = (&'static str, Work<'c>);

/// One pass of a way.
pub enum Work<'c> {
    /// Changes nothing that the next pass uses.
    Ask(Pass<'c, ()>),
    /// Changes what is known. Returns the time of the pass without the restoration.
    Learn(Pass<'c, Duration>),
}

type Pass<'c, R> = Box<dyn FnMut(&mut Vec<u64>) -> R + 'c>;

/// A pass that learns. The timing excludes the copy of the known set that it needs, and the lookups
/// that bring what a fuzzer's last execution used back to the caches.
fn learn<'c, M: Clone + 'c>(
    known: &'c M,
    look_up: impl Fn(&M) + 'c,
    mut pass: impl FnMut(&mut M, &mut Vec<u64>) + 'c,
) -> Work<'c> {
    let mut copy = known.clone();
    Work::Learn(Box::new(move |new| {
        copy.clone_from(known);
        look_up(&copy);
        let start = Instant::now();
        pass(&mut copy, new);
        start.elapsed()
    }))
}

/// Prepares all ways for a case and passes them on, with a map of the known PCs.
pub fn with(case: &Case, take: impl FnOnce(&NoveltyMap, &mut [Way<'_>])) {
    let map = NoveltyMap::new(case.ranges.clone());
    map.merge(&case.known);
    let count = AtomicU64::new(case.trace.len() as u64);
    let buffer: Vec<AtomicU64> =
        [count].into_iter().chain(case.trace.iter().copied().map(AtomicU64::new)).collect();
    let live = || Trace::from_words(black_box(&buffer), TracePc);
    // All ways read the same memory, so that none has it in a closer cache than the others.
    let words = buffer[1..].as_ptr().cast::<u64>();
    // SAFETY: these are the words after the count; `u64` has the same layout, and nobody writes
    // them.
    let words = unsafe { slice::from_raw_parts(words, case.trace.len()) };
    let trace = || black_box(words);
    let set_of_known: FxHashSet<u64> = case.known.iter().copied().collect();
    let mut of_execution = FxHashSet::default();
    let mut syzkaller = Syzkaller::new(&case.known);
    let mut hits = ByteMap::new(&case.known);

    let mut ways: Vec<Way<'_>> = vec![
        (
            "floor: sum of all words",
            Work::Ask(Box::new(|_| {
                black_box(trace().iter().fold(0u64, |sum, pc| sum.wrapping_add(*pc)));
            })),
        ),
        (
            "kcov: anything new? live",
            Work::Ask(Box::new(|_| {
                black_box(map.has_new(live()));
            })),
        ),
        (
            "kcov: which are new? live",
            Work::Ask(Box::new(|new| map.for_each_new(live(), |pc| new.push(pc)))),
        ),
        (
            "kcov: merge and name, live",
            learn(
                &map,
                |map| map.for_each_new(live(), |pc| _ = black_box(pc)),
                |map, new| {
                    black_box(map.merge_with(live(), |pc| new.push(pc)));
                },
            ),
        ),
        (
            "Fx HashSet, global only",
            Work::Ask(Box::new(|new| {
                new.extend(trace().iter().filter(|pc| !set_of_known.contains(*pc)));
            })),
        ),
        (
            "Fx HashSet, one per execution too",
            Work::Ask(Box::new(|new| {
                of_execution.clear();
                let first = |pc: &&u64| of_execution.insert(**pc) && !set_of_known.contains(*pc);
                new.extend(trace().iter().filter(first));
            })),
        ),
        (
            "Fx HashSet, merge and name",
            learn(
                &set_of_known,
                |set| _ = black_box(trace().iter().filter(|pc| set.contains(pc)).count()),
                |set, new| new.extend(trace().iter().filter(|pc| set.insert(**pc))),
            ),
        ),
        ("syzkaller, PCs", Work::Ask(Box::new(|new| syzkaller.name_new(trace(), new)))),
        ("u8 map, count and compare", Work::Ask(Box::new(|new| hits.name_new(trace(), new)))),
    ];
    take(&map, &mut ways);
}
