//! Program counters: what is recorded, and where.

use super::*;
use crate::system::checks::calls::seek_nowhere;
use nix::unistd::getcwd;
use std::os::unix::net::UnixStream;

/// The records of one call.
pub(crate) fn records(map: &Map, traced: impl Fn()) -> Vec<u64> {
    map.reset();
    traced();
    let count = super::index(map.count());
    assert!(count < map.words(), "the buffer has room");
    map.copy(1, count)
}

/// The buffer after one call and the disable request. All other words still have the sentinel.
fn marked(cx: &Context) -> Map {
    let (device, map) = collecting(cx, KCOV_TRACE_PC);
    mark_from(&map, 0);
    call();
    device.disable().expect("disabled");
    map
}

/// Calls that each leave fewer records than a buffer of the documented size holds.
pub(crate) const WORKLOAD: &[fn()] = &[call, files, directories, pipes, sockets, memory];

fn files() {
    let path = std::env::temp_dir().join(format!("kcov-workload-{}", std::process::id()));
    let moved = path.with_extension("moved");
    std::fs::write(&path, [1; 3000]).expect("a file");
    std::fs::rename(&path, &moved).expect("renamed");
    assert_eq!(std::fs::read(&moved).expect("its bytes").len(), 3000);
    std::fs::remove_file(&moved).expect("removed");
    assert!(std::fs::metadata(&path).is_err(), "the old name is gone");
}

fn directories() {
    assert!(std::fs::read_dir("/dev").expect("a directory").count() > 0);
    getcwd().expect("a directory of one's own");
}

fn pipes() {
    let (out, into) = pipe().expect("a pipe");
    write(&into, &[7; 10]).expect("room in the pipe");
    assert_eq!(read(&out, &mut [0; 20]), Ok(10));
}

fn sockets() {
    let (mut left, mut right) = UnixStream::pair().expect("two sockets");
    left.write_all(b"over there").expect("room in the socket");
    right.read_exact(&mut [0; 10]).expect("what was written");
}

fn memory() {
    let fresh = Map::anonymous(4 * page_size()).expect("memory");
    fresh.fill(0, 1);
    fresh.unmap().expect("unmapped");
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("pc.single-call", collecting_pc, |_, _device, map| {
        assert!(!records(&map, call).is_empty());
        assert!(at_times(|| records(&map, || ()).is_empty()), "without a call there is nothing");
    }),
    on_buffer("pc.tail-of-enable-is-recorded", collecting_pc, |_, _device, map| {
        assert!(map.count() > 0);
    }),
    on_buffer("pc.head-of-disable-is-recorded", collecting_pc, |_, device, map| {
        map.reset();
        device.disable().expect("disabled");
        assert!(map.count() > 0);
    }),
    on_buffer("pc.storing-zero-starts-over", collecting_pc, |_, _device, map| {
        (0..100).for_each(|_| call());
        let many = map.count();
        let has_fewer = || {
            mark(&map, SENTINEL);
            let records = records(&map, call);
            assert!(!records.is_empty(), "a call is recorded");
            assert!(!records.iter().any(is_sentinel), "records begin again at word 1");
            (records.len() as u64) < many
        };
        // A preempted call can leave many records.
        assert!(at_times(has_fewer));
    }),
    check("pc.count-is-word-zero", |cx| {
        let map = marked(cx);
        let count = super::index(map.count());
        let written = (1..map.words()).take_while(|&word| !is_sentinel(&map.load(word))).count();
        assert_eq!(written, count);
    }),
    on_buffer("pc.records-follow-the-count", collecting_pc, |_, _device, map| {
        // Each record is a kernel address: none is null, and all are close together.
        let records = records(&map, call);
        let least = *records.iter().min().expect("a record");
        let greatest = *records.iter().max().expect("a record");
        assert!(least >= 4096, "{least:#x}");
        assert!(greatest - least < 1 << 30, "{least:#x} to {greatest:#x}");
    }),
    check("pc.records-are-return-addresses", |cx| {
        let blocks = sites().blocks();
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        let mut seen = BTreeSet::new();
        for traced in WORKLOAD {
            seen.extend(records(&map, traced));
        }
        device.disable().expect("disabled");
        let others: Vec<_> = seen.iter().filter(|record| !blocks.contains(record)).collect();
        assert!(others.is_empty(), "behind no call of the hook: {others:#x?}, of {}", seen.len());
        assert!(seen.len() > 500, "only {} places show little", seen.len());
    }),
    check("pc.words-behind-the-count-are-untouched", |cx| {
        let map = marked(cx);
        let count = super::index(map.count());
        assert!(count > 0);
        assert!(is_marked_from(&map, 1 + count));
    }),
    check("pc.same-call-same-records", |cx| {
        const ROUNDS: usize = 64;
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        let mut seen: HashMap<Vec<u64>, usize> = HashMap::new();
        for _ in 0..ROUNDS {
            *seen.entry(records(&map, call)).or_default() += 1;
        }
        // "More or less": an interrupt may add records to some rounds.
        let (usual, times) = seen.iter().max_by_key(|(_, times)| **times).expect("rounds");
        assert!(*times >= ROUNDS / 2, "of {} outcomes, none came over {times} times", seen.len());
        assert!(!usual.is_empty());
    }),
    on_buffer("pc.other-call-other-records", collecting_pc, |_, _device, map| {
        let set = |traced: fn()| records(&map, traced).into_iter().collect::<BTreeSet<_>>();
        let (read, seek) = (set(call), set(seek_nowhere));
        assert!(read.difference(&seek).next().is_some(), "read has records of its own");
        assert!(seek.difference(&read).next().is_some(), "lseek has records of its own");
    }),
    on_buffer("pc.nothing-while-blocked", mapped, |_, device, map| {
        let asleep = || {
            let before = settled(&map);
            assert!(before > 0, "it was traced before it blocked");
            // If the buffer were full, it would hide records that others add.
            assert!(super::index(before) < map.words() - 1, "others have filled its buffer");
            // Other threads start, make a call and end meanwhile.
            (0..100).for_each(|_| thread(call));
            assert_eq!(map.count(), before, "a thread that sleeps has added something");
        };
        other_stays_traced(&map, || device.enable(KCOV_TRACE_PC), asleep);
    }),
];
