//! Where the device is: its addresses and its descriptor, out of a target's way.

use super::*;
use nix::sys::stat::fstat;

/// The bytes of the buffer of a [`builder`].
fn bytes() -> usize {
    (1 << 16) * word_bytes()
}

/// Opens a device with this many guard pages on each side. Returns it with its addresses, and those
/// with the guard pages.
fn opened(cx: &Context, guard_pages: usize) -> (Device, Range<usize>, Range<usize>) {
    let guard = guard_pages * page_size();
    let whole = free_addresses(bytes() + 2 * guard);
    let buffer = whole.start + guard..whole.end - guard;
    let builder = builder(cx).guard_pages(guard_pages).address(buffer.start);
    (builder.open().expect("it opens there"), buffer, whole)
}

/// Opens a device, and asserts that its descriptor has this number and closes on exec.
#[track_caller]
fn has_number(builder: Builder, number: RawFd) -> Device {
    let before = descriptors();
    let device = builder.open().expect("it opens");
    assert_eq!((descriptor(&device), descriptors()), (number, before + 1), "none stays behind");
    assert_eq!(fcntl(device.as_fd(), FcntlArg::F_GETFD), Ok(libc::FD_CLOEXEC));
    device
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.protection.address-is-exact", |cx| {
        for guard_pages in [0, 2] {
            let (mut device, buffer, whole) = opened(cx, guard_pages);
            records(&mut device);
            // What another mapping of the buffer shows appears at its addresses.
            let map = intruder(&device);
            for (word, value) in [(1, [0x5e; 4]), (map.words() - 1, [0xed; 4])] {
                map.store(word, u64::from_ne_bytes([value, value].concat().try_into().expect("8")));
                assert_eq!(peek(buffer.start + word * word_bytes()), Some(value));
            }
            drop(device);
            let ends = [whole.start, buffer.start, buffer.end - 1, whole.end - 1];
            assert_eq!(ends.map(accessible), [(false, false); 4], "unmapped with the device");
        }
    }),
    check("api.protection.address-in-use-is-left-alone", |cx| {
        let page = page_size();
        // Something is at the first or last page of the buffer or of its guards.
        for (guard_pages, other) in [(0, 0), (0, bytes() - page), (1, 0), (1, page + bytes())] {
            let guard = guard_pages * page;
            let place = free_addresses(bytes() + 2 * guard).start;
            let others = Others::at(place + other..place + other + page);
            let before = descriptors();
            let refused = builder(cx).guard_pages(guard_pages).address(place + guard).open();
            fails(refused, Operation::Map, ErrorKind::AddressInUse);
            others.are_untouched();
            assert_eq!(descriptors(), before, "the device was closed");
        }
    }),
    check("api.protection.guard-pages-cannot-be-accessed", |cx| {
        let (mut device, buffer, whole) = opened(cx, 2);
        assert_eq!(whole.len() - buffer.len(), 4 * page_size());
        for guard in [buffer.start - 1, whole.start, buffer.end, whole.end - 1] {
            assert_eq!(accessible(guard), (false, false), "{guard:#x} of {whole:x?}");
            // Nothing else can be mapped there, so they are more than a hole.
            let page = guard - guard % page_size();
            let refused = builder(cx).size(kcov::BufferSize::words(1)).address(page).open();
            assert_eq!(kind(refused), ErrorKind::AddressInUse);
        }
        assert_eq!([buffer.start, buffer.end - 1].map(accessible), [(true, true); 2]);
        assert!(!of_a_call(enable(&mut device)).trace().is_empty());
        drop(device);
        let again = builder(cx).guard_pages(2).address(buffer.start).open();
        drop(again.expect("all of it is free again"));
    }),
    check("api.protection.descriptor-is-exact", |cx| {
        // The number that open(2) would choose, and one far above it.
        let next = File::open("/dev/null").expect("a file").as_raw_fd();
        for number in [next, 300] {
            let mut device = has_number(builder(cx).fd(number), number);
            records(&mut device);
        }
        // The last of the two methods counts.
        drop(has_number(builder(cx).min_fd(200).fd(300), 300));
        drop(has_number(builder(cx).fd(300).min_fd(200), 200));
    }),
    check("api.protection.descriptor-in-use-is-left-alone", |cx| {
        let file = File::open("/dev/null").expect("a file");
        let other = fcntl(&file, FcntlArg::F_DUPFD_CLOEXEC(300)).expect("a number");
        let is_null = |number: RawFd| {
            // SAFETY: nothing closes the number during this call.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
            fstat(fd).expect("open").st_rdev == fstat(&file).expect("open").st_rdev
        };
        let before = descriptors();
        for number in [other, file.as_raw_fd()] {
            let refused = builder(cx).fd(number).open();
            fails(refused, Operation::MoveDescriptor, ErrorKind::DescriptorInUse);
            assert!(is_null(number), "the file that has the number is left alone");
            assert_eq!(descriptors(), before, "the device was closed");
        }
    }),
    check("api.protection.descriptor-is-moved-up-and-closed-on-exec", |cx| {
        let mut device = has_number(builder(cx).min_fd(200), 200);
        let other = has_number(builder(cx).min_fd(200), 201);
        records(&mut device);
        drop(other);
    }),
    check("api.protection.descriptor-beyond-the-limit-is-refused", |cx| {
        for number in [i32::MAX, -1, i32::MIN] {
            for builder in [builder(cx).min_fd(number), builder(cx).fd(number)] {
                assert_eq!(kind(builder.open()), ErrorKind::DescriptorOutOfLimits, "{number}");
            }
        }
    }),
];
