//! Threads: which one is traced, and what a thread's end does.

use super::*;
use std::sync::mpsc::channel;

/// Counts the records that many calls of this thread add to a mapping whose owner is blocked.
pub(super) fn added_by_calls(map: &Map) -> u64 {
    added_records(map, 1)
}

/// The same with records of this many words.
pub(crate) fn added_records(map: &Map, words: usize) -> u64 {
    let before = settled(map);
    // A full buffer would not grow, whichever thread were traced.
    assert!(index(before) < (map.words() - 1) / words, "the buffer has room");
    (0..1000).for_each(|_| call());
    map.count() - before
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("thread.only-the-enabling-one-is-traced", mapped, |_, device, map| {
        while_other_is_enabled(&device, || assert_eq!(added_by_calls(&map), 0));
        assert!(map.count() > 0, "the other one was traced");
    }),
    on_buffer("thread.new-one-is-not-traced", collecting_pc, |_, _device, map| {
        let added = || {
            // The enabled thread has recorded the start, and blocks in join.
            let _ = settled(&map);
            map.reset();
            added_by_calls(&map)
        };
        assert_eq!(thread(added), 0);
        assert!(is_traced(&map), "the first one still is");
    }),
    slow("thread.one-device-for-each", 30, |cx| {
        for threads in [2, 4, 8, 16, 32] {
            let buffers: Vec<_> = (0..threads).map(|_| mapped(cx)).collect();
            let maps: Vec<&Map> = buffers.iter().map(|(_, map)| map).collect();
            std::thread::scope(|scope| {
                let enabled = buffers.iter().map(|(device, _)| {
                    let ((go, turns), (done, made)) = (channel(), channel());
                    scope.spawn(move || {
                        device.enable(KCOV_TRACE_PC).expect("enabled");
                        done.send(()).expect("received");
                        for () in turns {
                            call();
                            done.send(()).expect("received");
                        }
                        device.disable().expect("disabled");
                    });
                    made.recv().expect("enabled");
                    (go, made)
                });
                let enabled: Vec<_> = enabled.collect();
                let mut counts = all_settled(&maps);
                for (turn, (go, made)) in enabled.iter().enumerate() {
                    go.send(()).expect("received");
                    made.recv().expect("a call");
                    let count = settled(maps[turn]);
                    assert!(count > counts[turn], "thread {turn} of {threads} is traced");
                    counts[turn] = count;
                    // The other threads are blocked.
                    let now: Vec<u64> = maps.iter().map(|map| map.count()).collect();
                    assert_eq!(now, counts, "after a call of thread {turn} of {threads}");
                }
                enabled.iter().for_each(|(go, _)| go.send(()).expect("received"));
                enabled.iter().for_each(|(_, made)| made.recv().expect("a call"));
                let mut grown = all_settled(&maps).into_iter().zip(&counts);
                assert!(grown.all(|(now, last)| now > *last), "all {threads} are traced at once");
            });
        }
    }),
    on_buffer("thread.one-at-a-time-per-device", mapped, |_, device, map| {
        while_other_is_enabled(&device, || {
            assert!(device.enable(KCOV_TRACE_PC).is_err());
            assert_eq!(added_by_calls(&map), 0);
        });
    }),
    check("thread.exit-disables", |cx| {
        for mode in modes(cx) {
            let (device, map) = mapped(cx);
            thread(|| device.enable(mode).expect("enabled"));
            assert_eq!(added_by_calls(&map), 0);
            assert_eq!(enable_freed(&device, mode), Ok(()), "nobody has it enabled");
            device.disable().expect("disabled");
        }
    }),
    on_device("thread.exit-frees-for-next-thread", usual, |_, device| {
        for round in 0..10 {
            let enabled = thread(|| enable_freed(&device, KCOV_TRACE_PC));
            assert_eq!(enabled, Ok(()), "round {round}");
        }
    }),
    on_buffer("thread.exit-keeps-the-records", mapped, |_, device, map| {
        let count = thread(|| {
            traces(&device, &map);
            map.count()
        });
        assert!(map.count() >= count);
        assert!(map.load(1) != 0);
    }),
    check("thread.end-concerns-no-other-thread", |cx| {
        let buffers: Vec<_> = (0..6).map(|_| mapped(cx)).collect();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (device, map) in &buffers {
                let ((ask, asked), (answer, answers)) = (channel::<()>(), channel());
                let thread = scope.spawn(move || {
                    device.enable(KCOV_TRACE_PC).expect("enabled");
                    // Ends when nobody can ask any more.
                    for () in asked {
                        // NetBSD frees an ended thread while another one ends or begins.
                        thread(|| ());
                        map.reset();
                        call();
                        answer.send(map.count()).expect("somebody has asked");
                    }
                });
                threads.push(Some((ask, answers, thread)));
            }
            for end in [None, Some(2), Some(0), Some(5), Some(3)] {
                if let Some((ask, _, thread)) = end.and_then(|end: usize| threads[end].take()) {
                    drop(ask);
                    thread.join().expect("a thread");
                }
                for (number, (thread, (device, _))) in threads.iter().zip(&buffers).enumerate() {
                    let Some((ask, answers, _)) = thread else { continue };
                    ask.send(()).expect("the thread listens");
                    assert!(answers.recv().expect("an answer") > 0, "thread {number} is traced");
                    assert!(device.enable(KCOV_TRACE_PC).is_err(), "{number} has its device");
                }
                if let Some((device, _)) = end.map(|end| &buffers[end]) {
                    enable_freed(device, KCOV_TRACE_PC).expect("nobody has it enabled");
                    device.disable().expect("disabled");
                }
            }
        });
    }),
    on_buffer("thread.mode-changes-from-one-to-the-next", mapped, |_, device, map| {
        for round in 0..6 {
            let (mode, stride) = [(KCOV_TRACE_PC, 1), (KCOV_TRACE_CMP, 4)][round % 2];
            let records = thread(|| {
                enable_freed(&device, mode).expect("the thread before has ended");
                mark_from(&map, 0);
                call();
                map.copy(1, stride * index(map.count()))
            });
            assert!(!records.is_empty() && !records.iter().any(is_sentinel), "round {round}");
            // A record ends with an address; in comparison mode it starts with a type.
            let ips = records.chunks_exact(stride).map(|record| record[stride - 1]);
            assert!(ips.clone().all(|ip| ip >= 4096), "round {round}: {records:#x?}");
            assert_eq!(records[0] < 8, mode == KCOV_TRACE_CMP, "round {round}: {records:#x?}");
            assert_eq!(map.copy(1, records.len()), records, "round {round}: what the end leaves");
        }
    }),
];
