//! Devices of whose buffer children inherit only the first page.

use super::*;

/// Opens a device with guard pages of whose buffer children inherit only the first page. Returns its
/// addresses too, with the guard pages.
pub(crate) fn private(cx: &Context) -> (Device, Range<usize>) {
    let guard = page_size();
    let whole = free_addresses((1 << 16) * word_bytes() + 2 * guard);
    let builder = builder(cx).guard_pages(1).address(whole.start + guard);
    // SAFETY: children make no trace of it.
    let builder = unsafe { builder.not_inherited() };
    (builder.open().expect("it opens"), whole)
}

/// The pages that children do not have.
fn rest(place: &Range<usize>) -> Range<usize> {
    place.start + 2 * page_size()..place.end - page_size()
}

/// The first and the last byte of the buffer between its guard pages, and those of the guard pages.
fn ends(place: &Range<usize>) -> [usize; 4] {
    let guard = page_size();
    [place.start + guard, place.end - guard - 1, place.start, place.end - 1]
}

/// Asserts that this process, which has the device, can use it, and that dropping it unmaps it.
#[track_caller]
pub(crate) fn works_and_ends(cx: &Context, mut device: Device, place: &Range<usize>) {
    records(&mut device);
    let before = descriptors();
    drop(device);
    assert_eq!(descriptors(), before - 1);
    assert_eq!(ends(place).map(accessible), [(false, false); 4]);
    assert!(is_free(cx));
}

/// In a child: maps something in place of the pages that it does not have, drops a value, and asserts
/// that this stays.
pub(crate) fn leaves_others_alone<T>(value: T, place: &Range<usize>) {
    let others = Others::at(rest(place));
    let before = descriptors();
    drop(value);
    others.are_untouched();
    assert_eq!(descriptors(), before - 1);
    assert_eq!(ends(place).map(accessible)[0], (false, false), "the first page is gone");
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.inherited.children-have-the-first-page", |cx| {
        let (device, place) = private(cx);
        let inside = [(true, true), (true, true), (false, false), (false, false)];
        assert_eq!(ends(&place).map(accessible), inside);
        let first = [(true, true), (false, false), (false, false), (false, false)];
        let (in_child, in_grandchild): ([_; 4], [_; 4]) = child(|| {
            let in_grandchild = child(|| ends(&place).map(accessible));
            (ends(&place).map(accessible), in_grandchild)
        });
        assert_eq!((in_child, in_grandchild), (first, first));
        assert_eq!(ends(&place).map(accessible), inside, "the parent's stay");
        works_and_ends(cx, device, &place);
    }),
    check("api.inherited.device-dropped-in-a-child", |cx| {
        let (device, place) = private(cx);
        let mut device = Some(device);
        for _ in 0..2 {
            child(|| leaves_others_alone(device.take(), &place));
            // The child's child has another copy.
            child(|| child(|| leaves_others_alone(device.take(), &place)));
            // Nothing is mapped there.
            child(|| drop(device.take()));
            records(device.as_mut().expect("the parent's"));
        }
        works_and_ends(cx, device.expect("the parent's"), &place);
    }),
    check("api.inherited.child-buffer-dropped-in-a-child", |cx| {
        let (device, place) = private(cx);
        let mut buffer = Some(device.into_child_buffer(TracePc).expect("it is free"));
        child(|| leaves_others_alone(buffer.take(), &place));
        works_and_ends(cx, buffer.expect("the parent's").into_device(), &place);
    }),
    check("api.inherited.session-dropped-in-a-child", |cx| {
        let (device, place) = private(cx);
        let mut session = Some(device.into_session(TracePc).expect("enabled"));
        call();
        child(|| leaves_others_alone(session.take(), &place));
        let mut session = session.expect("the parent's");
        // The forks may have filled the buffer.
        session.reset();
        call();
        let recorded = session.disable().expect("the parent was traced all the time");
        assert!(!recorded.trace().is_empty());
        works_and_ends(cx, recorded.into_owner(), &place);
    }),
    check("api.inherited.leaked-session-in-a-child", |cx| {
        let (mut device, place) = private(cx);
        std::mem::forget(enable(&mut device));
        let number = descriptor(&device);
        let mut device = Some(device);
        child(|| leaves_others_alone(device.take(), &place));
        assert!(!is_free(cx), "the parent is traced still");
        let device = device.expect("the parent's");
        assert_eq!(descriptor(&device), number);
        drop(device);
        assert_eq!(ends(&place).map(accessible), [(false, false); 4]);
        assert!(is_free(cx));
    }),
    check("api.inherited.threads-have-the-pages", |cx| {
        let (mut device, place) = private(cx);
        thread(|| records(&mut device));
        thread(|| works_and_ends(cx, device, &place));
    }),
];
