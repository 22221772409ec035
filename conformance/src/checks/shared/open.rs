//! Opening the device file, its file operations, unknown requests and `KCOV_INIT_TRACE`.

use super::full::is_filled;
use super::*;
use crate::system::checks::open::unknown_are_refused;
use nix::sys::uio::{pread, pwrite};
use nix::unistd::{Whence, lseek};

pub(crate) const CHECKS: &[Check] = &[
    check("open.instances-are-independent", |cx| {
        let (first, second) = (open(cx), open(cx));
        first.init_trace(page_words()).expect("the first is sized");
        assert!(second.map(page_words()).is_err(), "the second has no buffer yet");
        second.init_trace(2 * page_words()).expect("the second is sized");
        let (one, two) = (first.map(page_words()), second.map(2 * page_words()));
        let (one, two) = (one.expect("the first's buffer"), two.expect("the second's buffer"));
        one.store(5, 1);
        assert_eq!(two.load(5), 0);
    }),
    check("open.access-mode-is-ignored", |cx| {
        for mode in [OFlag::O_RDONLY, OFlag::O_WRONLY] {
            let device = Device::open_with(cx.device(), mode).expect("the device opens");
            assert_eq!(device.init_trace(page_words()), Ok(()), "{mode:?}");
            assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "{mode:?}");
            assert_eq!(device.disable(), Ok(()), "{mode:?}");
        }
    }),
    check("open.read-is-refused", |cx| call_is_refused(cx, |it| read(it, &mut [0; 8]))),
    check("open.write-is-refused", |cx| call_is_refused(cx, |it| write(it, &[0; 8]))),
    check("open.positioned-read-is-refused", |cx| {
        call_is_refused(cx, |it| pread(it, &mut [0; 8], 0));
    }),
    check("open.positioned-write-is-refused", |cx| {
        call_is_refused(cx, |it| pwrite(it, &[0; 8], 0));
    }),
    check("open.seek-is-refused", |cx| {
        for whence in [Whence::SeekSet, Whence::SeekCur, Whence::SeekEnd] {
            call_is_refused(cx, |it| lseek(it, 0, whence));
        }
    }),
    check("request.unknown-before-sizing-is-refused", |cx| unknown_are_refused(cx, &open(cx))),
    check("request.unknown-when-sized-is-refused", |cx| {
        unknown_are_refused(cx, &sized(cx, COVER_SIZE));
    }),
    on_device("request.unknown-while-enabled-is-refused", enabled_pc, |cx, device| {
        unknown_are_refused(cx, &device);
        device.disable().expect("it is still enabled");
    }),
    on_device("request.unknown-from-other-thread-is-refused", enabled_pc, |cx, device| {
        thread(|| unknown_are_refused(cx, &device));
    }),
    on_device("size.sets-the-buffer-size", open, |_, device| {
        assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
        let map = device.map(COVER_SIZE).expect("a buffer of that size");
        map.store(map.words() - 1, 1);
        assert!(device.map(COVER_SIZE + page_words()).is_err(), "and no larger");
    }),
    check("size.zero-is-refused", |cx| cx.refused_by(&open(cx), |device| device.init_trace(0))),
    check("size.one-is-refused", |cx| cx.refused_by(&open(cx), |device| device.init_trace(1))),
    check("size.above-greatest-is-refused", |cx| {
        cx.refused_by(&open(cx), |device| device.init_trace(max_words() + 1));
    }),
    check("size.need-not-be-whole-pages", |cx| {
        for words in [3, page_words() - 1, page_words() + 1] {
            let device = sized(cx, words);
            assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "{words} words");
            call();
            assert_eq!(device.disable(), Ok(()), "{words} words");
        }
    }),
    on_buffer("size.buffer-is-zeroed", mapped, |_, _device, map| {
        assert!(is_zero(&map));
    }),
    check("size.second-time-is-refused", |cx| {
        cx.refused_by(&sized(cx, COVER_SIZE), |device| device.init_trace(COVER_SIZE));
    }),
    on_buffer("size.second-time-other-size-is-refused", mapped, |cx, device, map| {
        cx.refused_by(&device, |device| device.init_trace(2 * COVER_SIZE));
        assert!(device.map(COVER_SIZE + page_words()).is_err(), "the first size holds");
        cx.refused_by(&device, |device| device.init_trace(COVER_SIZE / 2));
        device.map(COVER_SIZE).expect("the first size holds");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        is_filled(&map);
    }),
    on_buffer("size.second-time-while-enabled-is-refused", collecting_pc, |cx, device, map| {
        for words in [COVER_SIZE, COVER_SIZE / 2, 2 * COVER_SIZE] {
            cx.refused_by(&device, |device| device.init_trace(words));
        }
        is_filled(&map);
    }),
    on_device("size.second-time-after-disable-is-refused", enabled_pc, |cx, device| {
        device.disable().expect("disabled");
        cx.refused_by(&device, |device| device.init_trace(COVER_SIZE));
    }),
    on_buffer("size.range-comes-before-state", mapped, |cx, device, map| {
        cx.refused_by(&device, |device| device.init_trace(0));
        cx.refused_by(&device, |device| device.init_trace(max_words() + 1));
        device.enable(KCOV_TRACE_PC).expect("enabled");
        is_filled(&map);
    }),
    on_device("size.refusal-leaves-device-unsized", open, |_, device| {
        assert!(device.init_trace(0).is_err());
        assert!(device.map(page_words()).is_err());
        assert_eq!(device.init_trace(page_words()), Ok(()));
    }),
];
