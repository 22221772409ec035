//! What closing and the end of a thread free.

use super::*;

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("close.last-descriptor-by-other-thread", mapped, |_, device, map| {
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
    }),
    slow("close.instance-is-freed", 60, |cx| {
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
    }),
    check("thread.exit-gives-the-buffer-up", |cx| {
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
    }),
];
