//! What closing gives back.

use super::{mapped_of, open, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, areas_of, free_memory, kernel_memory_lost, page_words};

checks! {
    instance_is_given_back without(Quarantine) seconds(60),
    buffer_is_given_back seconds(60),
}

fn instance_is_given_back(cx: &Context) {
    // Each instance is at least half a hundred bytes, so that many make 256 KiB.
    const TIMES: usize = 4000;
    let lost = kernel_memory_lost(TIMES, 128, || drop(open(cx)));
    assert!(lost < 128, "{lost} KiB more than before");
    // With an instance that was used its buffer would be lost.
    let before = areas_of("kcov_ioctl");
    for _ in 0..10 {
        let device = sized(cx, page_words());
        assert!(device.init_trace(page_words()).is_err(), "it has a size");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.disable().expect("disabled");
    }
    // Fewer if one of before was given back late.
    assert!(areas_of("kcov_ioctl") <= before);
}

fn buffer_is_given_back(cx: &Context) {
    /// 2 MiB.
    const WORDS: u64 = 1 << 18;
    /// So much others may have taken meanwhile; soon enough for the check to say so itself.
    const MOST: u64 = 64 << 20;
    let free = free_memory();
    for round in 0..100 {
        assert!(free_memory() + MOST > free, "round {round}: {free} bytes were free");
        let (device, map) = mapped_of(cx, WORDS);
        map.store(map.words() - 1, round);
        // Each is held by both, and given up by either first.
        if round % 2 == 0 {
            device.close().expect("closed");
            map.unmap().expect("unmapped");
        } else {
            map.unmap().expect("unmapped");
            device.close().expect("closed");
        }
    }
}
