//! Kernel loops whose length the caller chooses. A block or comparison that has just been recorded is
//! recorded again.

use super::cmp::{Comparison, collect};
use super::pc::records;
use super::*;
use kcov_sys::linux::{KCOV_CMP_CONST, kcov_cmp_size};
use std::ffi::CString;

/// How often the loops run. The compiler may have peeled off the first or last turn, so checks
/// compare two lengths. Linux polls more than about 30 descriptors in several parts.
const TURNS: [usize; 4] = [5, 20, 21, 29];

/// Looks up a short name after this many slashes, which the kernel skips one by one. A longer name
/// would make longer loops.
fn skip_slashes(turns: usize) {
    let path = format!("{}?", "/".repeat(turns));
    let path = CString::new(path).expect("a path");
    // SAFETY: the path ends with a zero byte.
    let returned = unsafe { libc::access(path.as_ptr(), libc::F_OK) };
    assert_eq!(returned, -1, "there is no such file");
}

/// Polls this many entries whose descriptor is -1, which the kernel skips.
fn poll_nothing(turns: usize) {
    let mut none = vec![libc::pollfd { fd: -1, events: 0, revents: 0 }; turns];
    // SAFETY: the call gets the number of entries, and does not block.
    let returned = unsafe { libc::poll(none.as_mut_ptr(), turns as libc::nfds_t, 0) };
    assert_eq!(returned, 0, "nothing is ready");
}

/// How often to trace a call. Interrupts add records, on a busy machine in most rounds, but they
/// remove none.
const ROUNDS: usize = 32;

/// How often to compare loops.
const TRIES: usize = 4;

/// The records of each round.
fn rounds(map: &Map, traced: impl Fn()) -> impl Iterator<Item = Vec<u64>> {
    traced();
    (0..ROUNDS).map(move |_| records(map, &traced))
}

/// The longest run of any round, for each of [`TURNS`]. Records that an interrupt adds end a run.
/// Only runs of the block that the most turns repeat count: a call may have other, shorter loops.
fn longest_of(map: &Map, period: usize, traced: impl Fn(usize)) -> [usize; 4] {
    let longest = |turns, block| {
        let rounds = rounds(map, || traced(turns));
        rounds.map(|records| longest(&records, period, block)).max().expect("rounds")
    };
    let (_, block) = longest(TURNS[3], None);
    TURNS.map(|turns| longest(turns, Some(block)).0)
}

/// The length of the longest run of records in which each equals the one `period` before it, and
/// its last record. Runs without `block` do not count, if there is one.
fn longest(records: &[u64], period: usize, block: Option<u64>) -> (usize, u64) {
    let (mut run, mut longest) = (0, (0, 0));
    for at in period..records.len() {
        let varies = period == 1 || records[at] != records[at - 1];
        run = if records[at] == records[at - period] && varies { run + 1 } else { 0 };
        if block.is_none_or(|block| records[at - period..=at].contains(&block)) {
            longest = longest.max((run + period, records[at]));
        }
    }
    longest
}

/// How often each address is recorded at least, if at all, and in how many rounds.
fn times(map: &Map, traced: impl Fn()) -> HashMap<u64, Times> {
    let mut all: HashMap<u64, Times> = HashMap::new();
    for records in rounds(map, traced) {
        let mut times: HashMap<u64, usize> = HashMap::new();
        records.into_iter().for_each(|record| *times.entry(record).or_default() += 1);
        for (address, times) in times {
            let one = all.entry(address).or_insert(Times { least: times, rounds: 0 });
            one.least = one.least.min(times);
            one.rounds += 1;
        }
    }
    all
}

#[derive(Clone, Copy, Default)]
struct Times {
    least: usize,
    rounds: usize,
}

/// Checks that `steps` more steps add as many times the records of one more step, for every address.
/// Addresses that only some rounds record are left out: interrupts add them, and code that runs
/// unless there was one.
fn grow_linearly(all: &[HashMap<u64, Times>; 3], steps: usize) -> Result<(), String> {
    let mut turns = 0;
    for address in all.iter().flat_map(HashMap::keys) {
        let times = all.each_ref().map(|it| it.get(address).copied().unwrap_or_default());
        if times.iter().any(|it| ![0, ROUNDS].contains(&it.rounds)) {
            continue;
        }
        let [few, more, most] = times.map(|it| it.least);
        if more < few || most < few || most - few != steps * (more - few) {
            return Err(format!("{address:#x} is recorded {few}, {more} and {most} times"));
        }
        turns += more - few;
    }
    if turns == 0 { Err("more turns leave no more records".into()) } else { Ok(()) }
}

const SLASH: u64 = b'/' as u64;

/// The maximum number of comparisons of this kind and these operands at one address.
fn most_comparisons(comparisons: &[Comparison], kind: u64, first: u64, second: u64) -> usize {
    let mut times: HashMap<u64, usize> = HashMap::new();
    for comparison in comparisons {
        if (comparison.kind, comparison.first, comparison.second) == (kind, first, second) {
            *times.entry(comparison.address).or_default() += 1;
        }
    }
    times.into_values().max().unwrap_or(0)
}

/// Whether Clang built this kernel. Clang leaves out the comparison that ends a loop.
fn is_built_by_clang() -> bool {
    std::fs::read_to_string("/proc/version").is_ok_and(|text| text.contains("clang version"))
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("pc.turns.block-that-follows-itself", collecting_pc, |_, _device, map| {
        let in_a_row = longest_of(&map, 1, skip_slashes);
        let more = in_a_row.map(|records| records.wrapping_sub(in_a_row[0]));
        assert_eq!(more, TURNS.map(|turns| turns - TURNS[0]), "records in a row: {in_a_row:?}");
    }),
    on_buffer("pc.turns.blocks-that-take-turns", collecting_pc, |_, _device, map| {
        // The compiler decides how many blocks a turn has.
        let by_blocks = [2, 3, 4].map(|blocks| (blocks, longest_of(&map, blocks, poll_nothing)));
        let found = by_blocks.iter().any(|(blocks, in_turns)| {
            let more = in_turns.map(|records| records.wrapping_sub(in_turns[0]));
            more == TURNS.map(|turns| blocks * (turns - TURNS[0]))
        });
        assert!(found, "blocks of a turn, and records in turns: {by_blocks:?}");
    }),
    on_buffer("pc.turns.each-turn-is-recorded-alike", collecting_pc, |_, _device, map| {
        // The compiler may have unrolled the loops eight times, and the kernel may copy a path in
        // words of eight bytes. It handles long paths, and many descriptors, in another way.
        for (call, step, most) in [(skip_slashes as fn(usize), 8, 8), (poll_nothing, 8, 2)] {
            let try_once = || {
                let lengths = [0, 1, most].map(|steps| 8 + steps * step);
                grow_linearly(&lengths.map(|turns| times(&map, || call(turns))), most)
            };
            // Other code of the call, such as the allocator's, may change its path at any time.
            let mut results = Vec::new();
            while results.len() < TRIES && !results.contains(&Ok(())) {
                results.push(try_once());
            }
            assert!(results.contains(&Ok(())), "{results:?}");
        }
    }),
    check("cmp.turns.each-turn-is-recorded", |cx| {
        // No interrupt compares these values.
        let times = TURNS.map(|turns| {
            if is_built_by_clang() {
                let kind = kcov_cmp_size(2) | KCOV_CMP_CONST;
                most_comparisons(&collect(cx, || poll_nothing(turns)), kind, 0, u32::MAX.into())
            } else {
                let kind = kcov_cmp_size(0) | KCOV_CMP_CONST;
                most_comparisons(&collect(cx, || skip_slashes(turns)), kind, SLASH, SLASH)
            }
        });
        let more = times.map(|count| count.wrapping_sub(times[0]));
        assert_eq!(more, TURNS.map(|turns| turns - TURNS[0]), "in each call: {times:?}");
    }),
];
