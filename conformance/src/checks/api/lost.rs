//! Devices that a target has reached: how their loss is noticed, and how they are given up.

use super::*;

/// Unmaps memory, as a target might that does not own it.
fn unmap(start: usize, bytes: usize) {
    // SAFETY: the callers access the buffer only in ways that cannot fault.
    assert_eq!(unsafe { libc::munmap(start as *mut _, bytes) }, 0);
}

/// Asserts that a new device works, and gives up the old one.
pub(crate) fn gives_up(cx: &Context, device: Device) {
    device.abandon();
    records(&mut open(cx, 4096));
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.lost.unmapped-page-is-noticed", |cx| {
        let (page, words) = (page_size(), 4 * page_words());
        for (first, pages) in [(0, 4), (0, 1), (2, 1), (3, 1)] {
            let (mut device, place) = open_at(cx, words);
            let full = device.capacity(TracePc) as u64;
            let map = intruder(&device);
            let buffer = lend(&mut device);
            assert_eq!(buffer.device().check_readable(), Ok(()));
            unmap(place.start + first * page, pages * page);
            assert_eq!(kind(buffer.device().check_readable()), ErrorKind::BufferLost);
            // A trace that ends before the lost page can still be read.
            for (count, is_readable) in [(0, first > 0), (1, first > 0), (full, false)] {
                map.store(0, count);
                let trace =
                    buffer.trace().map(|trace| trace.len() as u64).map_err(|error| error.kind());
                assert_eq!(trace, if is_readable { Ok(count) } else { Err(ErrorKind::BufferLost) });
            }
            gives_up(cx, device);
        }
    }),
    on_crate("api.lost.looking-changes-nothing", 4096, |_, mut device| {
        let map = intruder(&device);
        let mut buffer = lend(&mut device);
        map.fill(1, SENTINEL);
        let seen = seen_by_child(&mut buffer);
        let before = map.copy(0, map.words());
        for _ in 0..2 {
            assert_eq!(buffer.device().check_readable(), Ok(()));
            assert_eq!(addresses(&left(&buffer)), seen);
            assert_eq!(map.copy(0, map.words()), before, "the count, the records and what follows");
        }
        assert!(!seen.is_empty());
    }),
    check("api.lost.looking-makes-no-request", |cx| {
        with_device_of_a_living_thread(cx, |traced, map| {
            let recorded = crate::raw::settled(&map);
            let before = map.copy(0, map.words());
            let mut device = open(cx, 4096);
            let number = descriptor(&device);
            let kept = device.as_fd().try_clone_to_owned().expect("a second descriptor");
            let buffer = lend(&mut device);
            // Any request would now reach the other thread's device, or a file that refuses it.
            for file in [traced.as_fd(), File::open("/dev/null").expect("a file").as_fd()] {
                take_number(number, &file);
                assert_eq!(buffer.device().check_readable(), Ok(()));
                assert!(left(&buffer).is_empty());
                assert_eq!(traced.check_readable(), Ok(()), "also while it is enabled");
            }
            take_number(number, &kept);
            assert!(recorded > 0);
            assert_eq!(map.copy(0, map.words()), before, "the thread's records");
            records(&mut device);
        });
    }),
    check("api.lost.abandoned-device-leaves-others-alone", |cx| {
        let (device, place) = open_at(cx, 4096);
        let number = descriptor(&device);
        take_number(number, &File::open("/dev/null").expect("a file"));
        let others = Others::at(place);
        gives_up(cx, device);
        others.are_untouched();
        assert!(is_open(number), "the file that has the number");

        // What nobody has touched stays as well.
        let (device, place) = open_at(cx, 4096);
        let number = descriptor(&device);
        gives_up(cx, device);
        assert_eq!(crate::raw::accessible(place.start), (true, true));
        assert!(is_open(number), "the device's own descriptor");
    }),
];
