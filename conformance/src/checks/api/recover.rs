//! Devices whose descriptor or mapping a target has not left alone.

use super::{addresses, enable, intruder, open, records, with_device_of_a_living_thread};
use crate::check::{Context, checks};
use crate::raw::{accessible, call, page_size};
use kcov::mode::TracePc;
use kcov::{Device, Error, ErrorKind};
use nix::fcntl::{FcntlArg, fcntl};
use std::ffi::c_void;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

checks! {
    intact_comes_back_as_it_is,
    full_buffer_is_intact,
    closed_descriptor,
    number_of_another_file,
    number_of_another_device,
    unmapped_buffer,
    memory_of_somebody_else,
    last_page_of_somebody_else,
    inaccessible_buffer,
    read_only_buffer,
    traced_by_another_thread,
    adopted_is_not_recoverable,
}

/// What a target does that closes numbers that are not its own.
pub(crate) fn close(number: RawFd) {
    // SAFETY: the number is a device's, which the check tells of it before it is used or dropped.
    assert_eq!(unsafe { libc::close(number) }, 0);
}

/// What a target does that duplicates onto a number that is not its own.
fn take(number: RawFd, file: &impl std::os::fd::AsRawFd) {
    // SAFETY: as for `close`.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
}

/// What a target does that maps where something else is.
fn map_over(start: usize, bytes: usize) {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_FIXED);
    let address = start as *mut c_void;
    // SAFETY: as for `close`, of memory; no session is enabled.
    let mapped = unsafe { libc::mmap(address, bytes, prot, flags | libc::MAP_ANONYMOUS, -1, 0) };
    assert_eq!(mapped, address);
}

/// What a target does that changes the protection of what is not its own.
fn protect(start: usize, bytes: usize, prot: i32) {
    // SAFETY: as for `map_over`.
    assert_eq!(unsafe { libc::mprotect(start as *mut c_void, bytes, prot) }, 0);
}

fn is_open(number: RawFd) -> bool {
    // SAFETY: nothing closes the number while it is looked at.
    fcntl(unsafe { BorrowedFd::borrow_raw(number) }, FcntlArg::F_GETFD).is_ok()
}

/// That a device works, and knows that it does.
fn works(mut device: Device) -> Device {
    assert!(device.is_intact());
    records(&mut device);
    device
}

fn intact_comes_back_as_it_is(cx: &Context) {
    for builder in [Device::builder(), Device::builder().write_protected().guard_pages(1)] {
        let mut device = builder.path(cx.device()).open().expect("it opens");
        let (number, place, words) = (device.as_raw_fd(), addresses(&mut device), device.words());
        for _ in 0..3 {
            let access = accessible(place.start);
            assert!(device.is_intact());
            device = device.recover().expect("intact");
            assert_eq!((device.as_raw_fd(), addresses(&mut device)), (number, place.clone()));
            assert_eq!((device.words(), accessible(place.start)), (words, access));
            assert!(super::lend(&mut device).trace().is_empty(), "its records are lost");
            records(&mut device);
        }
        // A session that was leaked in this thread is ended.
        std::mem::forget(enable(&mut device));
        assert!(device.is_intact());
        records(&mut device);
    }
}

/// A record has overwritten what the buffer is known by.
fn full_buffer_is_intact(cx: &Context) {
    let mut device = open(cx, 1);
    let (number, place) = (device.as_raw_fd(), addresses(&mut device));
    let session = enable(&mut device);
    while !session.trace().is_truncated() {
        call();
    }
    assert!(session.disable().expect("disabled").is_truncated());
    assert!(device.is_intact());
    let mut device = device.recover().expect("intact");
    assert_eq!((device.as_raw_fd(), addresses(&mut device)), (number, place));
    records(&mut device);
}

fn closed_descriptor(cx: &Context) {
    let mut device = open(cx, 4096);
    close(device.as_raw_fd());
    assert!(!device.is_intact());
    let device = device.recover().expect("opened again");
    assert_eq!(device.words(), 4096);
    drop(works(device));
}

fn number_of_another_file(cx: &Context) {
    let device = open(cx, 4096);
    let number = device.as_raw_fd();
    take(number, &std::fs::File::open("/dev/null").expect("a file"));
    let device = works(device.recover().expect("opened again"));
    assert_ne!(device.as_raw_fd(), number);
    drop(device);
    assert!(is_open(number), "the file that has the number is left alone");
}

fn number_of_another_device(cx: &Context) {
    // One that nobody has used yet, one with records, and one that is full.
    for calls in [0, 1, 1000] {
        let (mut device, mut other) = (open(cx, 1), open(cx, 1));
        let number = device.as_raw_fd();
        let session = enable(&mut other);
        (0..calls).for_each(|_| call());
        drop(session);
        let map = intruder(&other);
        let before = map.copy(0, map.words());
        take(number, &other);
        assert!(!device.is_intact());
        let device = works(device.recover().expect("opened again"));
        drop(device);
        assert_eq!(map.copy(0, map.words()), before, "{calls} calls: the other one's records");
        assert!(is_open(number), "and its descriptor");
        records(&mut other);
    }
}

fn unmapped_buffer(cx: &Context) {
    let mut device = open(cx, 4096);
    let place = addresses(&mut device);
    // SAFETY: the check tells the device of it before it is used or dropped.
    assert_eq!(unsafe { libc::munmap(place.start as *mut c_void, place.len()) }, 0);
    assert!(!device.is_intact());
    records(&mut device.recover().expect("opened again"));
}

/// Replaces the buffer from that page on, and looks whether what is there now stays as it is.
fn replaced(cx: &Context, first_page: usize) {
    let mut device = open(cx, 4096);
    let place = addresses(&mut device);
    let (start, bytes) = (place.start + first_page * page_size(), place.len());
    let bytes = bytes - first_page * page_size();
    map_over(start, bytes);
    // SAFETY: this much was just mapped there, is nobody else's and is accessed atomically.
    let words = unsafe { std::slice::from_raw_parts(start as *const AtomicU64, bytes / 8) };
    words.iter().zip(1..).for_each(|(word, number)| word.store(number, Ordering::Relaxed));
    let is_untouched = |when| {
        let mut same = words.iter().zip(1..);
        assert!(same.all(|(word, number)| word.load(Ordering::Relaxed) == number), "{when}");
    };
    assert!(!device.is_intact());
    is_untouched("after the question");
    let mut device = works(device.recover().expect("opened again"));
    assert_ne!(addresses(&mut device), place);
    is_untouched("after the recovery");
    drop(device);
    is_untouched("after the end of the device");
}

fn memory_of_somebody_else(cx: &Context) {
    replaced(cx, 0);
}

fn last_page_of_somebody_else(cx: &Context) {
    replaced(cx, 7);
}

fn inaccessible_buffer(cx: &Context) {
    for first_page in [0, 7] {
        let mut device = open(cx, 4096);
        let place = addresses(&mut device);
        let start = place.start + first_page * page_size();
        protect(start, place.end - start, libc::PROT_NONE);
        drop(works(device.recover().expect("opened again")));
    }
}

fn read_only_buffer(cx: &Context) {
    let mut device = open(cx, 4096);
    let place = addresses(&mut device);
    protect(place.start, place.len(), libc::PROT_READ);
    assert_eq!(accessible(place.start), (true, false));
    let mut device = device.recover().expect("recovered");
    let place = addresses(&mut device);
    assert_eq!((accessible(place.start), accessible(place.end - 1)), ((true, true), (true, true)));
    records(&mut device);
}

fn traced_by_another_thread(cx: &Context) {
    with_device_of_a_living_thread(cx, |mut device, map| {
        // The thread is about to block, and records until then.
        let count = usize::try_from(crate::raw::settled(&map)).expect("a count");
        let before = map.copy(0, 1 + count);
        assert!(count > 0 && !device.is_intact());
        let device = device.recover().expect("opened again");
        drop(works(device));
        assert_eq!(map.copy(0, before.len()), before, "the thread's records");
    });
}

fn adopted_is_not_recoverable(cx: &Context) {
    let device = open(cx, 4096);
    let words = device.words();
    let given: OwnedFd = device.as_fd().try_clone_to_owned().expect("a second descriptor");
    // SAFETY: it is a kcov device of that size.
    let mut adopted = unsafe { Device::adopt(given, words) }.expect("adopted");
    // Intact it comes back.
    assert!(adopted.is_intact());
    let adopted = adopted.recover().expect("intact");
    close(adopted.as_raw_fd());
    let refused: Result<Device, Error> = adopted.recover();
    assert_eq!(refused.expect_err("somebody else's").kind(), ErrorKind::NotRecoverable);
    let mut device = device;
    drop(device.enable(TracePc).expect("the first is untouched"));
}
