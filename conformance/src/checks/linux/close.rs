//! What closing frees.

use super::{open, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, areas_of, kernel_memory_lost, page_words};

checks! {
    instance_is_given_back without(Quarantine) seconds(60),
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
        assert!(device.init_trace(page_words()).is_err(), "it is enabled");
        device.disable().expect("disabled");
    }
    // There are fewer if an earlier one was freed late.
    assert!(areas_of("kcov_ioctl") <= before);
}
