//! What closing frees.

use super::{mapped_of, open, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, areas_of, free_memory, kernel_memory_lost, page_words};

checks! {
    instance_is_given_back without(Quarantine) seconds(60),
    buffer_is_given_back seconds(60),
}

fn instance_is_given_back(cx: &Context) {
    // Each instance takes more than 50 bytes, so leaking all of them would exceed the limit.
    const TIMES: usize = 4000;
    let lost = kernel_memory_lost(TIMES, 128, || drop(open(cx)));
    assert!(lost < 128, "{lost} KiB more than before");
    // A leaked instance would also leak its buffer.
    let before = areas_of("kcov_ioctl");
    for _ in 0..10 {
        let device = sized(cx, page_words());
        assert!(device.init_trace(page_words()).is_err(), "it has a size");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.disable().expect("disabled");
    }
    // There are fewer if an earlier one was freed late.
    assert!(areas_of("kcov_ioctl") <= before);
}

fn buffer_is_given_back(cx: &Context) {
    /// 2 MiB.
    const WORDS: u64 = 1 << 18;
    /// Others may use this much meanwhile. The check fails long before memory runs out.
    const MOST: u64 = 64 << 20;
    let free = free_memory();
    for round in 0..100 {
        assert!(free_memory() + MOST > free, "round {round}: {free} bytes were free");
        let (device, map) = mapped_of(cx, WORDS);
        map.store(map.words() - 1, round);
        // The file descriptor and the mapping both hold the buffer. Either may go first.
        if round % 2 == 0 {
            device.close().expect("closed");
            map.unmap().expect("unmapped");
        } else {
            map.unmap().expect("unmapped");
            device.close().expect("closed");
        }
    }
}
