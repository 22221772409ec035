//! What closing frees.

use super::{mapped, open, sized};
use crate::check::{Context, checks};
use crate::checks::shared::beside_other;
use crate::raw::{
    KCOV_TRACE_PC, areas_of, call, kernel_memory_lost, page_size, page_words, word_bytes,
};
use std::io::Read as _;

checks! {
    "close.last-descriptor-by-other-thread": last_descriptor_by_other_thread,
    "close.instance-is-freed": instance_is_freed seconds(60),
}

fn last_descriptor_by_other_thread(cx: &Context) {
    let (device, map) = mapped(cx);
    let duplicate = device.duplicate().expect("a duplicate");
    // A mapping would keep the device open. The pipe holds only the page with the count.
    let mut page = map.first_page_in_pipe(2).expect("a pipe");
    let enable = || duplicate.enable(KCOV_TRACE_PC).and_then(|()| duplicate.close());
    let close = || {
        map.unmap().expect("unmapped");
        device.close().expect("closed");
    };
    let mut count = || {
        let mut bytes = vec![0; page_size()];
        page.read_exact(&mut bytes).expect("the page");
        bytes.truncate(word_bytes());
        bytes
    };
    let counts = || {
        let before = count();
        call();
        [before, count()]
    };
    let ((), [before, after]) = beside_other(enable, close, counts);
    assert_ne!(before, after, "the thread is still traced");
}

fn instance_is_freed(cx: &Context) {
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
