//! Opening, sizing and mapping.

use super::{enable, lend, open};
use crate::check::{Context, checks};
use crate::raw::{call, page_words, with_console_off};
use kcov::mode::{TraceCmp, TracePc};
use kcov::{BufferSize, Device, ErrorKind, Operation};

checks! {
    "api.device.default-size": default_size,
    "api.device.size-is-rounded-up-to-pages": size_is_rounded_up_to_pages,
    "api.device.records-fit": records_fit,
    "api.device.size-over-the-limit-is-refused-or-clamped":
        size_over_the_limit_is_refused_or_clamped,
    "api.device.missing-device-is-named": missing_device_is_named,
    "api.device.other-file-is-no-device": other_file_is_no_device,
    "api.device.devices-are-independent": devices_are_independent,
    "api.device.moves-between-threads": moves_between_threads,
}

fn default_size(cx: &Context) {
    let mut device = Device::builder().path(cx.device()).open().expect("the device opens");
    assert_eq!(device.words(), 256 << 10);
    assert_eq!(device.capacity(TracePc), (256 << 10) - 1);
    let session = enable(&mut device);
    call();
    assert!(!session.trace().is_empty());
}

fn size_is_rounded_up_to_pages(cx: &Context) {
    let page = page_words();
    for (asked, given) in [(0, page), (1, page), (page, page), (page + 1, 2 * page)] {
        assert_eq!(open(cx, asked).words() as u64, given, "{asked} words");
    }
}

fn records_fit(cx: &Context) {
    let size = |size| Device::builder().path(cx.device()).size(size).open().expect("it opens");
    for records in [1, 511, 512, 10_000] {
        let records_fit = size(BufferSize::records(records, TracePc)).capacity(TracePc);
        assert!(records_fit as u64 >= records);
        let records_fit = size(BufferSize::records(records, TraceCmp)).capacity(TraceCmp);
        assert!(records_fit as u64 >= records);
    }
}

fn size_over_the_limit_is_refused_or_clamped(cx: &Context) {
    let limit = *BufferSize::limits().end();
    let over = Device::builder().path(cx.device()).size(BufferSize::words(limit + 1)).open();
    let error = over.expect_err("over the limit");
    assert_eq!((error.operation(), error.kind()), (Operation::SetSize, ErrorKind::SizeOutOfLimits));
    assert!(error.to_string().contains(&limit.to_string()), "{error}");
    // A guest may lack the memory for the largest buffer. The error must say so.
    let clamped = BufferSize::words(u64::MAX).clamped();
    let open = || Device::builder().path(cx.device()).size(clamped).open();
    match with_console_off(open) {
        Ok(device) => assert_eq!(device.words() as u64, limit),
        Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfMemory),
    }
}

fn missing_device_is_named(cx: &Context) {
    let missing = cx.device().with_file_name("kcov-is-not-here");
    let error = Device::builder().path(&missing).open().expect_err("there is no such file");
    assert_eq!((error.operation(), error.kind()), (Operation::Open, ErrorKind::NotBuiltIn));
    assert!(error.to_string().contains("kcov-is-not-here"), "{error}");
}

fn other_file_is_no_device(_: &Context) {
    let error = Device::builder().path("/dev/null").open().expect_err("not kcov");
    // No request was made, so there is no errno.
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::NotKcov, None));
}

fn devices_are_independent(cx: &Context) {
    let (mut first, mut second) = (open(cx, 1), open(cx, 1));
    let session = enable(&mut first);
    call();
    let count = session.disable().expect("disabled").len();
    assert!(count > 0);
    assert!(lend(&mut second).trace().is_empty());
}

fn moves_between_threads(cx: &Context) {
    let mut device = open(cx, 1);
    for _ in 0..3 {
        device = std::thread::spawn(move || {
            let session = enable(&mut device);
            call();
            assert!(!session.disable().expect("disabled").is_empty());
            device
        })
        .join()
        .expect("the thread");
    }
}
