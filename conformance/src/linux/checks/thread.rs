//! What a thread's end frees.

use super::{COVER_SIZE, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, LONG, thread, vmalloc_used, wait_for, word_bytes};

checks! {
    "thread.exit-frees-for-next-thread": exit_frees_for_next_thread,
    "thread.exit-gives-the-buffer-up": exit_gives_the_buffer_up,
}

fn exit_frees_for_next_thread(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for round in 0..20 {
        let enabled = thread(|| device.enable(KCOV_TRACE_PC));
        assert_eq!(enabled, Ok(()), "round {round}");
    }
}

fn exit_gives_the_buffer_up(cx: &Context) {
    /// 16 MiB, which is more than any other change meanwhile.
    const WORDS: u64 = 2 << 20;
    let half = WORDS * word_bytes() as u64 / 2;
    let before = vmalloc_used();
    let device = sized(cx, WORDS);
    thread(|| device.enable(KCOV_TRACE_PC).expect("enabled"));
    assert!(vmalloc_used() > before + half, "the buffer is there");
    drop(device);
    let gone = wait_for(LONG, || vmalloc_used() < before + half);
    assert!(gone, "{before} bytes before, {} now", vmalloc_used());
}
