//! Devices whose file descriptor or mapping the traced program has tampered with.

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
    "api.recover.intact-comes-back-as-it-is": intact_comes_back_as_it_is,
    "api.recover.full-buffer-is-intact": full_buffer_is_intact,
    "api.recover.closed-descriptor": closed_descriptor,
    "api.recover.number-of-another-file": number_of_another_file,
    "api.recover.number-of-another-device": number_of_another_device,
    "api.recover.unmapped-buffer": unmapped_buffer,
    "api.recover.memory-of-somebody-else": memory_of_somebody_else,
    "api.recover.last-page-of-somebody-else": last_page_of_somebody_else,
    "api.recover.inaccessible-buffer": inaccessible_buffer,
    "api.recover.read-only-buffer": read_only_buffer,
    "api.recover.traced-by-another-thread": traced_by_another_thread,
    "api.recover.adopted-is-not-recoverable": adopted_is_not_recoverable,
}

/// Closes a file descriptor, as a traced program might that does not own it.
pub(crate) fn close(number: RawFd) {
    // SAFETY: the number is a device's. The check calls `is_intact` or `recover` before other uses.
    assert_eq!(unsafe { libc::close(number) }, 0);
}

/// Duplicates onto a file descriptor, as a traced program might that does not own it.
fn take(number: RawFd, file: &impl std::os::fd::AsRawFd) {
    // SAFETY: as for `close`.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
}

/// Maps over existing memory, as a traced program might.
fn map_over(start: usize, bytes: usize) {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_FIXED);
    let address = start as *mut c_void;
    // SAFETY: as for `close`, but for memory. No session is enabled.
    let mapped = unsafe { libc::mmap(address, bytes, prot, flags | libc::MAP_ANONYMOUS, -1, 0) };
    assert_eq!(mapped, address);
}

/// Changes the protection of memory, as a traced program might that does not own it.
fn protect(start: usize, bytes: usize, prot: i32) {
    // SAFETY: as for `map_over`.
    assert_eq!(unsafe { libc::mprotect(start as *mut c_void, bytes, prot) }, 0);
}

fn is_open(number: RawFd) -> bool {
    // SAFETY: nothing closes the file descriptor during this call.
    fcntl(unsafe { BorrowedFd::borrow_raw(number) }, FcntlArg::F_GETFD).is_ok()
}

/// Asserts that a device works and reports itself intact.
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
        // A session leaked in this thread is ended.
        std::mem::forget(enable(&mut device));
        assert!(device.is_intact());
        records(&mut device);
    }
}

/// A record overwrites the mark that identifies the buffer, which still counts as intact.
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
    let words = device.words();
    close(device.as_raw_fd());
    assert!(!device.is_intact());
    let device = device.recover().expect("opened again");
    assert_eq!(device.words(), words);
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
    // The other device is unused, has records, or is full.
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
    // SAFETY: the check calls `is_intact` before other uses of the device.
    assert_eq!(unsafe { libc::munmap(place.start as *mut c_void, place.len()) }, 0);
    assert!(!device.is_intact());
    records(&mut device.recover().expect("opened again"));
}

/// Replaces all of the buffer, or its last page, and checks that the replacement stays unchanged.
fn replaced(cx: &Context, all: bool) {
    let mut device = open(cx, 4096);
    let place = addresses(&mut device);
    let start = if all { place.start } else { place.end - page_size() };
    let bytes = place.end - start;
    map_over(start, bytes);
    // SAFETY: `map_over` mapped this range, nothing else owns it, and all accesses are atomic.
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
    replaced(cx, true);
}

fn last_page_of_somebody_else(cx: &Context) {
    replaced(cx, false);
}

fn inaccessible_buffer(cx: &Context) {
    for all in [true, false] {
        let mut device = open(cx, 4096);
        let place = addresses(&mut device);
        let start = if all { place.start } else { place.end - page_size() };
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
        // The thread records until it blocks, which it is about to do.
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
    // SAFETY: it is a kcov device of this size.
    let mut adopted = unsafe { Device::adopt(given, words) }.expect("adopted");
    // An intact device is returned as it is.
    assert!(adopted.is_intact());
    let adopted = adopted.recover().expect("intact");
    close(adopted.as_raw_fd());
    let refused: Result<Device, Error> = adopted.recover();
    assert_eq!(refused.expect_err("somebody else's").kind(), ErrorKind::NotRecoverable);
    let mut device = device;
    drop(device.enable(TracePc).expect("the first is untouched"));
}
