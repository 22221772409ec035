//! Closing, duplicating and passing on file descriptors.

use super::kept::records_outlast;
use super::*;

/// How many devices with buffers of 1 MiB to use, one after another.
const DEVICES: u64 = 32;
const WORDS: u64 = 1 << 17;

/// Panics if the use of a device and its buffer leaves much less memory free than before.
#[track_caller]
fn gives_back(cx: &Context, used: impl Fn(Device, Map)) {
    let bytes = DEVICES * WORDS * word_bytes() as u64;
    gives_back_bytes(DEVICES, bytes, || {
        let (device, map) = mapped_of(cx, WORDS);
        used(device, map);
    });
}

/// Panics unless most of these bytes, which `times` uses take, are free afterwards. Other activities
/// of the kernel use a little memory.
#[track_caller]
pub(crate) fn gives_back_bytes(times: u64, bytes: u64, used: impl Fn()) {
    used();
    let before = free_memory();
    (0..times).for_each(|_| used());
    let lost = || before.saturating_sub(free_memory());
    assert!(wait_for(LONG, || lost() < bytes / 2), "{} of {bytes} bytes are lost", lost());
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("close.while-enabled-keeps-tracing", collecting_pc, |_, device, map| {
        records_outlast(&map, KCOV_TRACE_PC, || device.close().expect("closed"));
        assert!(is_traced(&map));
    }),
    on_device("close.while-enabled-keeps-the-thread-busy", enabled_pc, |cx, device| {
        device.close().expect("closed");
        cx.refused_by(&sized(cx, COVER_SIZE), |device| device.enable(KCOV_TRACE_PC));
    }),
    on_buffer("close.while-enabled-ends-with-the-thread", mapped, |cx, device, map| {
        thread(move || {
            device.enable(KCOV_TRACE_PC).expect("enabled");
            device.close().expect("closed");
        });
        map.reset();
        (0..100).for_each(|_| call());
        assert_eq!(map.count(), 0);
        assert_eq!(enable_freed(&sized(cx, COVER_SIZE), KCOV_TRACE_PC), Ok(()));
    }),
    on_buffer("close.by-other-thread-changes-nothing", mapped, |_, device, map| {
        let kept = device.duplicate().expect("a duplicate");
        let close = || device.close().expect("closed");
        other_stays_traced(&map, || kept.enable(KCOV_TRACE_PC), close);
    }),
    on_buffer("close.one-of-two-descriptors", mapped, |_, device, map| {
        let duplicate = device.duplicate().expect("a duplicate");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.close().expect("closed");
        assert!(is_traced(&map));
        assert_eq!(duplicate.disable(), Ok(()));
    }),
    on_buffer("close.passed-descriptor-is-the-same-device", mapped, |_, device, map| {
        let passed = pass_descriptor(&device);
        passed.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(is_traced(&map), "the buffer is the first descriptor's");
        let again = passed.map(COVER_SIZE).expect("the size is the first descriptor's");
        assert_eq!(again.load(1), map.load(1));
        assert_eq!(device.disable(), Ok(()));
    }),
    on_buffer("close.other-number-of-a-descriptor", mapped, |_, device, map| {
        let mut moved = std::fs::File::open("/dev/null").expect("a descriptor").into();
        dup2(&device, &mut moved).expect("dup2");
        device.close().expect("closed");
        let moved = Device::from(moved);
        traces(&moved, &map);
        moved.disable().expect("disabled");
        assert_eq!(moved.close(), Ok(()));
    }),
    check("close.process-may-end-in-every-state", |cx| {
        // The end of the child must clean up what the child leaves open, mapped or enabled.
        child(|| std::mem::forget(super::open(cx)));
        child(|| std::mem::forget(sized(cx, COVER_SIZE)));
        child(|| std::mem::forget(mapped(cx)));
        child(|| std::mem::forget(collecting(cx, KCOV_TRACE_PC)));
        child(|| {
            let (device, map) = collecting(cx, KCOV_TRACE_PC);
            device.close().expect("closed");
            std::mem::forget(map);
        });
        // The device of a parent outlives the child.
        for mode in modes(cx) {
            let device = sized(cx, COVER_SIZE);
            child(|| device.enable(mode).expect("enabled"));
            assert_eq!(enable_freed(&device, KCOV_TRACE_PC), Ok(()), "after mode {mode}");
            device.disable().expect("disabled");
        }
    }),
    slow("close.buffer-is-freed", 240, |cx| {
        // The file descriptor and the mapping both hold the buffer. Either may go first.
        let uses: [fn(Device, Map); 3] = [
            |device, map| {
                map.store(map.words() - 1, 1);
                device.close().expect("closed");
                map.unmap().expect("unmapped");
            },
            |device, map| {
                let again = device.map(WORDS).expect("mapped again");
                device.enable(KCOV_TRACE_PC).expect("enabled");
                call();
                device.disable().expect("disabled");
                again.unmap().expect("unmapped");
                map.unmap().expect("unmapped");
                device.close().expect("closed");
            },
            |device, map| {
                map.unmap().expect("unmapped");
                assert!(device.init_trace(WORDS).is_err(), "it has a size");
                assert!(device.map(WORDS + page_words()).is_err(), "it is not as long");
                assert!(device.disable().is_err(), "it is not enabled");
            },
        ];
        uses.iter().for_each(|used| gives_back(cx, used));
        // The second page has one word.
        let times = 512;
        gives_back_bytes(times, times * 2 * page_size() as u64, || {
            drop(sized(cx, page_words() + 1));
        });
    }),
    slow("close.buffer-of-an-ended-thread-is-freed", 240, |cx| {
        for mode in modes(cx) {
            // Closed by the thread itself.
            gives_back(cx, |device, map| {
                thread(|| {
                    device.enable(mode).expect("enabled");
                    device.close().expect("closed");
                    drop(map);
                });
            });
            // Closed later.
            gives_back(cx, |device, map| {
                thread(|| device.enable(mode).expect("enabled"));
                drop((device, map));
            });
        }
    }),
];
