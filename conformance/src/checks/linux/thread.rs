//! Threads: who is traced, and what a thread's end does.

use super::{COVER_SIZE, mapped, sized};
use crate::check::{Context, checks};
use crate::checks::shared::thread::added_by_calls;
use crate::raw::{Device, KCOV_TRACE_PC, Map, call, thread, vmalloc_used, wait_for};
use std::time::Duration;

checks! {
    one_device_for_each,
    exit_disables,
    exit_frees_for_next_thread,
    exit_gives_the_buffer_up,
}

fn one_device_for_each(cx: &Context) {
    const THREADS: usize = 8;
    let buffers: Vec<_> = (0..THREADS).map(|_| mapped(cx)).collect();
    let barrier = std::sync::Barrier::new(THREADS);
    let one = |(device, map): &(Device, Map)| {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        barrier.wait();
        map.reset();
        call();
        let count = map.count();
        barrier.wait();
        device.disable().expect("disabled");
        count
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = buffers.iter().map(|own| scope.spawn(|| one(own))).collect();
        let mut counts: Vec<_> = threads.into_iter().map(|t| t.join().expect("a thread")).collect();
        // All made one call; had they shared a buffer, counts would add up.
        counts.sort_unstable();
        assert!(counts[0] > 0, "{counts:?}");
        assert!(counts[THREADS / 2] < 2 * counts[0], "{counts:?}");
    });
}

fn exit_disables(cx: &Context) {
    let (device, map) = mapped(cx);
    thread(|| device.enable(KCOV_TRACE_PC).expect("enabled"));
    assert_eq!(added_by_calls(&map), 0);
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "nobody has it enabled");
}

fn exit_frees_for_next_thread(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for round in 0..20 {
        let enabled = thread(|| device.enable(KCOV_TRACE_PC));
        assert_eq!(enabled, Ok(()), "round {round}");
    }
}

fn exit_gives_the_buffer_up(cx: &Context) {
    /// 16 MiB, which is more than anything else that comes and goes meanwhile.
    const WORDS: u64 = 2 << 20;
    const HALF: u64 = WORDS * 8 / 2;
    let before = vmalloc_used();
    let device = sized(cx, WORDS);
    thread(|| device.enable(KCOV_TRACE_PC).expect("enabled"));
    assert!(vmalloc_used() > before + HALF, "the buffer is there");
    drop(device);
    let gone = wait_for(Duration::from_secs(5), || vmalloc_used() < before + HALF);
    assert!(gone, "{before} bytes before, {} now", vmalloc_used());
}
