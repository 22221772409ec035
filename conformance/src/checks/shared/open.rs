//! Opening the device file, its file operations, unknown requests and `KCOV_INIT_TRACE`.

use super::full::is_filled;
use crate::checks::prelude::*;
use crate::errno::Errno;
use crate::system::checks::open::unknown_are_refused;
use nix::fcntl::OFlag;
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
    check("open.read-is-refused", |cx| {
        let device = sized(cx, page_words());
        cx.refused(nix::unistd::read(&device, &mut [0; 8]).map_err(Errno::from));
    }),
    check("open.write-is-refused", |cx| {
        let device = sized(cx, page_words());
        cx.refused(nix::unistd::write(&device, &[0; 8]).map_err(Errno::from));
    }),
    check("open.positioned-read-is-refused", |cx| {
        let device = sized(cx, page_words());
        cx.refused(nix::sys::uio::pread(&device, &mut [0; 8], 0).map_err(Errno::from));
    }),
    check("open.positioned-write-is-refused", |cx| {
        let device = sized(cx, page_words());
        cx.refused(nix::sys::uio::pwrite(&device, &[0; 8], 0).map_err(Errno::from));
    }),
    check("open.seek-is-refused", |cx| {
        for whence in [Whence::SeekSet, Whence::SeekCur, Whence::SeekEnd] {
            let device = sized(cx, page_words());
            cx.refused(lseek(&device, 0, whence).map_err(Errno::from));
        }
    }),
    check("request.unknown-before-sizing-is-refused", |cx| unknown_are_refused(cx, &open(cx))),
    check("request.unknown-when-sized-is-refused", |cx| {
        unknown_are_refused(cx, &sized(cx, COVER_SIZE));
    }),
    check("request.unknown-while-enabled-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        unknown_are_refused(cx, &device);
        device.disable().expect("it is still enabled");
    }),
    check("request.unknown-from-other-thread-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        thread(|| unknown_are_refused(cx, &device));
    }),
    check("size.sets-the-buffer-size", |cx| {
        let device = open(cx);
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
    check("size.buffer-is-zeroed", |cx| {
        let (_device, map) = mapped(cx);
        assert!(map.copy(0, map.words()).iter().all(|&word| word == 0));
    }),
    check("size.second-time-is-refused", |cx| {
        cx.refused_by(&sized(cx, COVER_SIZE), |device| device.init_trace(COVER_SIZE));
    }),
    check("size.second-time-other-size-is-refused", |cx| {
        let (device, map) = mapped(cx);
        cx.refused_by(&device, |device| device.init_trace(2 * COVER_SIZE));
        assert!(device.map(COVER_SIZE + page_words()).is_err(), "the first size holds");
        cx.refused_by(&device, |device| device.init_trace(COVER_SIZE / 2));
        device.map(COVER_SIZE).expect("the first size holds");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        is_filled(&map);
    }),
    check("size.second-time-while-enabled-is-refused", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        for words in [COVER_SIZE, COVER_SIZE / 2, 2 * COVER_SIZE] {
            cx.refused_by(&device, |device| device.init_trace(words));
        }
        is_filled(&map);
    }),
    check("size.second-time-after-disable-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        device.disable().expect("disabled");
        cx.refused_by(&device, |device| device.init_trace(COVER_SIZE));
    }),
    check("size.range-comes-before-state", |cx| {
        let (device, map) = mapped(cx);
        cx.refused_by(&device, |device| device.init_trace(0));
        cx.refused_by(&device, |device| device.init_trace(max_words() + 1));
        device.enable(KCOV_TRACE_PC).expect("enabled");
        is_filled(&map);
    }),
    check("size.refusal-leaves-device-unsized", |cx| {
        let device = open(cx);
        assert!(device.init_trace(0).is_err());
        assert!(device.map(page_words()).is_err());
        assert_eq!(device.init_trace(page_words()), Ok(()));
    }),
];
