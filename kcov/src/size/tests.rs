//! Rounding and limits of sizes.

use super::*;
use crate::mode::{TraceCmp, TracePc};
use crate::system::LINUX;

fn words(size: BufferSize, width: Width) -> u64 {
    size.words_for(&LINUX, width).unwrap()
}

/// Number of 64-bit words in a page.
fn page() -> u64 {
    sys::page_size() as u64 / 8
}

#[test]
fn sizes_are_whole_pages() {
    let page = page();
    for (asked, pages) in [(0, 1), (1, 1), (page, 1), (page + 1, 2), (128 * page, 128)] {
        assert_eq!(words(BufferSize::words(asked), Width::W64), pages * page);
    }
    assert_eq!(words(BufferSize::words(page + 1), Width::W32), 2 * page);
    assert_eq!(words(BufferSize::words(2 * page + 1), Width::W32), 4 * page);
}

#[test]
fn records_count_the_count_word_and_the_stride() {
    let page = page();
    assert_eq!(words(BufferSize::records(page - 1, TracePc), Width::W64), page);
    assert_eq!(words(BufferSize::records(page, TracePc), Width::W64), 2 * page);
    let most = (page - 1) / 4;
    assert_eq!(words(BufferSize::records(most, TraceCmp), Width::W64), page);
    assert_eq!(words(BufferSize::records(most + 1, TraceCmp), Width::W64), 2 * page);
    assert_eq!(words(BufferSize::records(most, TraceCmp), Width::W32), 2 * page);
}

#[test]
fn a_size_over_the_limit_is_refused_with_the_limit_or_clamped() {
    let limits = page_limits(&LINUX, Width::W64);
    let over = limits.end() + 1;
    let error = BufferSize::words(over).words_for(&LINUX, Width::W64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SizeOutOfLimits);
    assert_eq!(error.limits().cloned(), Some(limits.clone()));
    let text = format!(
        "cannot set the size of the kcov buffer: the size is out of limits ({over} words asked \
         for, {} to {} words allowed)",
        limits.start(),
        limits.end()
    );
    assert_eq!(error.to_string(), text);
    for size in [BufferSize::words(over), BufferSize::words(u64::MAX)] {
        assert_eq!(words(size.clamped(), Width::W64), *limits.end());
    }
    let records = BufferSize::records(u64::MAX, TraceCmp);
    let error = records.words_for(&LINUX, Width::W64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SizeOutOfLimits);
    assert_eq!(words(records.clamped(), Width::W64), *limits.end());
}

#[test]
fn limits_are_whole_pages_within_those_of_the_driver() {
    let most = |words: u64, page: u64| words - words % page;
    assert_eq!(page_limits(&LINUX, Width::W64), page()..=most(0x0fff_ffff, page()));
    assert_eq!(page_limits(&LINUX, Width::W32), 2 * page()..=most(0x1fff_ffff, 2 * page()));
}
