//! Opening, probing, sizing and mapping.

use super::{enable, is_free, kind, left, lend, of_a_call, open};
use crate::checks::prelude::*;
use kcov::mode::{TraceCmp, TracePc};
use kcov::{BufferSize, Device, ErrorKind, Modes, Operation};
use std::os::fd::AsRawFd as _;

pub(crate) const CHECKS: &[Check] = &[
    check("api.device.default-size", |cx| {
        let mut device = Device::builder().path(cx.device()).open().expect("the device opens");
        assert_eq!(device.words(), 256 << 10);
        assert_eq!(device.capacity(TracePc), (256 << 10) - 1);
        let session = enable(&mut device);
        call();
        assert!(!session.trace().is_empty());
    }),
    check("api.device.size-is-rounded-up-to-pages", |cx| {
        let page = page_words();
        for (asked, given) in [(0, page), (1, page), (page, page), (page + 1, 2 * page)] {
            assert_eq!(open(cx, asked).words() as u64, given, "{asked} words");
        }
    }),
    check("api.device.records-fit", |cx| {
        let size = |size| Device::builder().path(cx.device()).size(size).open().expect("it opens");
        for records in [1, 511, 512, 10_000] {
            let records_fit = size(BufferSize::records(records, TracePc)).capacity(TracePc);
            assert!(records_fit as u64 >= records);
            let records_fit = size(BufferSize::records(records, TraceCmp)).capacity(TraceCmp);
            assert!(records_fit as u64 >= records);
        }
    }),
    check("api.device.size-over-the-limit-is-refused-or-clamped", |cx| {
        let limit = *BufferSize::limits().end();
        let over = Device::builder().path(cx.device()).size(BufferSize::words(limit + 1)).open();
        let error = over.expect_err("over the limit");
        assert_eq!(
            (error.operation(), error.kind()),
            (Operation::SetSize, ErrorKind::SizeOutOfLimits)
        );
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
        // A guest may lack the memory for the largest buffer. The error must say so.
        let clamped = BufferSize::words(u64::MAX).clamped();
        let open = || Device::builder().path(cx.device()).size(clamped).open();
        match with_console_off(open) {
            Ok(device) => assert_eq!(device.words() as u64, limit),
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfMemory),
        }
    }),
    check("api.device.missing-device-is-named", |cx| {
        let missing = cx.device().with_file_name("kcov-is-not-here");
        let error = Device::builder().path(&missing).open().expect_err("there is no such file");
        assert_eq!((error.operation(), error.kind()), (Operation::Open, ErrorKind::NotBuiltIn));
        assert!(error.to_string().contains("kcov-is-not-here"), "{error}");
    }),
    check("api.device.other-file-is-no-device", |_| {
        let error = Device::builder().path("/dev/null").open().expect_err("not kcov");
        // No request was made, so there is no errno.
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::NotKcov, None));
    }),
    check("api.device.devices-are-independent", |cx| {
        let (mut first, mut second) = (open(cx, 1), open(cx, 1));
        let count = of_a_call(enable(&mut first)).trace().len();
        assert!(count > 0);
        assert!(left(&lend(&mut second)).is_empty());
    }),
    check("api.device.moves-between-threads", |cx| {
        let mut device = open(cx, 1);
        for _ in 0..3 {
            device = std::thread::spawn(move || {
                assert!(!of_a_call(enable(&mut device)).trace().is_empty());
                device
            })
            .join()
            .expect("the thread");
        }
    }),
    check("api.modes.available-with-comparisons", |cx| {
        let modes = Modes::probe_path(cx.device()).expect("it works");
        assert!(modes.contains(TracePc) && modes.contains(TraceCmp));
    }),
    check("api.modes.probing-leaves-nothing-behind", |cx| {
        // The lowest free file descriptor, which changes if anything stays open.
        let next = || std::fs::File::open("/dev/null").expect("a file").as_raw_fd();
        let before = next();
        for _ in 0..10 {
            Modes::probe_path(cx.device()).expect("it works");
        }
        assert!(is_free(cx));
        assert_eq!(next(), before);
    }),
    check("api.modes.probing-while-traced", |cx| {
        let mut device = open(cx, 1 << 16);
        let mut session = enable(&mut device);
        Modes::probe_path(cx.device()).expect("it works");
        session.reset();
        call();
        assert!(!session.disable().expect("still enabled").trace().is_empty());
    }),
    check("api.modes.nothing-built-in", |cx| {
        let missing = cx.device().with_file_name("kcov-is-not-here");
        assert_eq!(kind(Modes::probe_path(missing)), ErrorKind::NotBuiltIn);
    }),
];
