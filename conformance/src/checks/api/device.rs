//! Opening, probing, sizing, mapping, and adopting a descriptor.

use super::*;
use std::os::fd::IntoRawFd as _;

/// Adopts a second file descriptor of the same open file.
fn adopt(fd: &impl AsFd, words: usize) -> Result<Device, Error> {
    let fd = fd.as_fd().try_clone_to_owned().expect("a second descriptor");
    // SAFETY: callers pass file descriptors of kcov devices. If the size is wrong, it is too large,
    // which every system refuses, or too small, which Linux refuses.
    unsafe { Device::adopt(fd, words) }
}

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
        let error = fails(over, Operation::SetSize, ErrorKind::SizeOutOfLimits);
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
        let opened = Device::builder().path(&missing).open();
        let error = fails(opened, Operation::Open, ErrorKind::NotBuiltIn);
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
    on_crate("api.device.moves-between-threads", 1, |_, mut device| {
        for _ in 0..3 {
            device = thread(move || {
                assert!(!of_a_call(enable(&mut device)).trace().is_empty());
                device
            });
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
    on_crate("api.modes.probing-while-traced", 1 << 16, |cx, mut device| {
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
    on_crate("api.adopt.inherited-by-a-child", 4096, |_, device| {
        let map = intruder(&device);
        let seen: Vec<u64> = child(|| {
            let mut device = adopt(&device, device.words()).expect("adopted");
            addresses(&of_a_call(enable(&mut device)).trace())
        });
        assert!(!seen.is_empty());
        assert_eq!((map.count(), map.copy(1, seen.len())), (seen.len() as u64, seen));
    }),
    on_crate("api.adopt.passed-over-a-socket", 4096, |_, device| {
        let words = device.words();
        let passed = pass_descriptor(&Raw::from(OwnedFd::from(device)));
        let mut device = adopt(&passed, words).expect("adopted");
        assert_eq!(device.words(), words);
        records(&mut device);
    }),
    on_crate("api.adopt.duplicated", 4096, |_, device| {
        let map = intruder(&device);
        let stays_open = nix::unistd::dup(&device).expect("a descriptor without flags");
        let number = stays_open.as_raw_fd();
        // SAFETY: it is a kcov device of this size.
        let mut second = unsafe { Device::adopt(stays_open, device.words()) }.expect("adopted");
        assert_eq!(descriptor(&second), number);
        assert_eq!(fcntl(&second, FcntlArg::F_GETFD), Ok(0), "not close-on-exec, as it was");
        let seen = of_a_call(enable(&mut second)).trace().len();
        assert_eq!(map.count(), seen as u64, "both have one buffer");
        drop(second);
        assert!(fcntl(&device, FcntlArg::F_GETFD).is_ok(), "the first is still there");
    }),
    on_crate("api.adopt.other-size-is-refused", 4096, |cx, device| {
        let not_sized = Raw::open(cx.device()).expect("the device opens");
        for refused in [adopt(&device, 2 * device.words()), adopt(&not_sized, device.words())] {
            assert_eq!(refused.expect_err("another size").operation(), Operation::Map);
        }
        assert_eq!(kind(adopt(&device, 0)), ErrorKind::Other);
        assert_eq!(kind(adopt(&device, usize::MAX)), ErrorKind::Other);
    }),
    on_crate("api.adopt.enabled-by-somebody-else", 4096, |_, mut device| {
        let second = device.as_fd().try_clone_to_owned().expect("a second descriptor");
        let words = device.words();
        let session = enable(&mut device);
        let mut second = adopt(&second, words).expect("adopted");
        let refused = thread(|| kind(second.enable(kcov::mode::TracePc)));
        assert_eq!(refused, ErrorKind::AlreadyEnabled);
        drop(session);
        records(&mut second);
    }),
    check("api.adopt.given-away", |cx| {
        let (device, place) = open_at(cx, 4096);
        let (number, words) = (descriptor(&device), device.words());
        assert_eq!(accessible(place.start), (true, true));
        let given = OwnedFd::from(device);
        assert_eq!(given.as_raw_fd(), number);
        assert_eq!(accessible(place.start), (false, false), "the buffer is unmapped");
        records(&mut adopt(&given, words).expect("the descriptor is open, and a device's"));

        // SAFETY: as in `adopt`.
        let device = unsafe { Device::adopt(given, words) }.expect("adopted");
        assert_eq!(OwnedFd::from(device).into_raw_fd(), number);
        // SAFETY: `into_raw_fd` has just released this descriptor, so nothing else owns it.
        let given: OwnedFd = unsafe { std::os::fd::FromRawFd::from_raw_fd(number) };
        records(&mut adopt(&given, words).expect("still open"));
    }),
];
