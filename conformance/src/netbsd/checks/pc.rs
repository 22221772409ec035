//! Program counters: behavior and promises that only NetBSD has.

use super::*;
use crate::checks::shared::full::nothing_is_written;
use crate::checks::shared::pc::records;
use nix::sys::stat::Mode;

/// Panics unless several ticks of the clock in a row leave no record.
#[track_caller]
pub(super) fn ticks_add_nothing(cx: &Context, mode: u32) {
    let (device, map) = mapped(cx);
    // A preemption at a tick would be recorded.
    first_in_first_out();
    device.enable(mode).expect("enabled");
    // How long a tick takes depends on the processor.
    let mut length = 1u64 << 22;
    let records_of_ticks = || {
        let before = ticks();
        map.reset();
        // This loop makes no system calls, and takes much longer than `ticks`.
        for step in 0..length {
            std::hint::black_box(step);
        }
        let count = map.count();
        let several = ticks().wrapping_sub(before) > 2;
        length *= if several { 1 } else { 2 };
        several.then_some(count)
    };
    // Kernel threads can still preempt this one, especially on a busy host.
    let mut counts = std::iter::repeat_with(records_of_ticks).flatten().take(100);
    assert!(counts.any(|count| count == 0), "ticks always leave records");
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("pc.page-faults-are-recorded", mapped, |_, device, map| {
        let fresh = Map::anonymous(page_size()).expect("memory");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(!records(&map, || fresh.store(0, 1)).is_empty());
    }),
    check("pc.interrupts-add-nothing", |cx| ticks_add_nothing(cx, KCOV_TRACE_PC)),
    on_buffer("pc.count-is-read-before-disabling", collecting_pc, |_, device, map| {
        map.reset();
        call();
        let count = map.count();
        device.disable().expect("disabled");
        assert!(map.count() > count, "the loop of the document's program goes beyond {count}");
    }),
    // The documented program, except for its private mapping.
    check("pc.documented-program", |cx| {
        const SIZE: u64 = 1024 * 100;
        let device = super::open(cx);
        assert_eq!(device.init_trace(SIZE), Ok(()));
        let map = device.map(SIZE).expect("the buffer is mapped");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        map.reset();
        call();
        let count = map.count();
        assert_eq!(device.disable(), Ok(()));
        let words = map.copy(1, super::index(count));
        assert!(!words.is_empty() && words.iter().all(|&word| word != 0));
        assert_eq!(map.unmap(), Ok(()));
        assert_eq!(device.close(), Ok(()));
        let again = nix::fcntl::open(cx.device(), nix::fcntl::OFlag::O_RDWR, Mode::empty());
        assert!(again.is_ok(), "and can be run again");
    }),
    check("pc.full.capacity-is-entries-less-one", |cx| {
        for entries in [2, 3, page_words() - 1, page_words(), page_words() + 1] {
            let (device, map) = mapped_pages_of(cx, entries);
            mark(&map, SENTINEL);
            device.enable(KCOV_TRACE_PC).expect("enabled");
            map.reset();
            (0..entries).for_each(|_| call());
            assert_eq!(map.count(), entries - 1, "{entries} entries");
            assert_ne!(map.load(index(entries) - 1), SENTINEL, "the last entry is used");
            assert!(is_marked_from(&map, index(entries)), "and no word behind it");
            device.disable().expect("disabled");
        }
    }),
    on_buffer("pc.full.stored-count-of-all-ones", page_of_pcs, |_, _device, map| {
        nothing_is_written(&map, u64::MAX);
    }),
];
