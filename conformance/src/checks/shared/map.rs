//! `mmap`.

use crate::checks::prelude::*;
use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::fcntl::OFlag;

const READ_WRITE: i32 = PROT_READ | PROT_WRITE;

pub(crate) const CHECKS: &[Check] = &[
    check("map.whole-buffer-shared", |cx| {
        let device = sized(cx, COVER_SIZE);
        let bytes = index(COVER_SIZE) * word_bytes();
        let map = device.map_with(bytes, 0, READ_WRITE, MAP_SHARED).expect("the documented call");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(is_traced(&map), "the kernel's stores are seen");
        map.store(0, 1000);
        call();
        assert!(map.count() > 1000, "the kernel sees this program's stores");
    }),
    check("map.unmap-and-close", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        device.disable().expect("disabled");
        assert_eq!(map.unmap(), Ok(()));
        assert_eq!(device.close(), Ok(()));
    }),
    check("map.before-sizing-is-refused", |cx| {
        cx.refused_by(&open(cx), |device| device.map(page_words()));
    }),
    check("map.longer-is-refused", |cx| {
        let device = sized(cx, 2 * page_words());
        cx.refused_by(&device, |device| device.map(3 * page_words()));
        cx.refused_by(&device, |device| device.map(COVER_SIZE));
    }),
    check("map.length-is-rounded-to-pages", |cx| {
        let device = sized(cx, 2 * page_words());
        let map = device.map_with(2 * page_size() - 1, 0, READ_WRITE, MAP_SHARED);
        assert_eq!(map.map(drop), Ok(()));
    }),
    check("map.several-show-the-same-words", |cx| {
        let (device, first) = mapped(cx);
        let second = device.map(COVER_SIZE).expect("a second mapping");
        assert_ne!(first.address(), second.address());
        device.enable(KCOV_TRACE_PC).expect("enabled");
        first.reset();
        call();
        device.disable().expect("disabled");
        assert!(first.count() > 0);
        assert_eq!(first.copy(0, first.words()), second.copy(0, second.words()));
        second.store(second.words() - 1, 7);
        assert_eq!(first.load(first.words() - 1), 7);
    }),
    check("map.while-enabled", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        let map = device.map(COVER_SIZE).expect("a mapping");
        assert!(map.count() > 0, "the mapping shows what was recorded before it");
    }),
    check("map.not-needed-to-enable", |cx| {
        let device = sized(cx, COVER_SIZE);
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        call();
        assert_eq!(device.disable(), Ok(()));
    }),
    check("map.outlives-the-descriptor", |cx| {
        let (device, map) = mapped(cx);
        map.fill(0, SENTINEL);
        device.close().expect("closed");
        // If the kernel had freed the pages, these devices would get them, zeroed, and
        // share stores.
        let others: Vec<_> = (0..16).map(|_| mapped(cx)).collect();
        assert!(map.copy(0, map.words()).iter().all(is_sentinel), "others have its pages");
        map.fill(0, !SENTINEL);
        for (_device, other) in &others {
            assert!(
                other.copy(0, other.words()).iter().all(|&word| word == 0),
                "it has others' pages"
            );
        }
    }),
    check("map.unmap-while-enabled", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        map.unmap().expect("unmapped");
        call();
        let map = device.map(COVER_SIZE).expect("a new mapping");
        assert!(is_traced(&map));
        assert_eq!(device.disable(), Ok(()));
    }),
    check("map.read-only", |cx| {
        let device = Device::open_with(cx.device(), OFlag::O_RDONLY).expect("the device opens");
        device.init_trace(COVER_SIZE).expect("sized");
        let bytes = index(COVER_SIZE) * word_bytes();
        let map = device.map_with(bytes, 0, PROT_READ, MAP_SHARED).expect("a mapping to read");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        let before = map.count();
        call();
        assert!(map.count() > before);
    }),
    check("map.private-is-accepted", |cx| {
        let (device, shared) = mapped_page(cx);
        let private = device.map_with(page_size(), 0, READ_WRITE, MAP_PRIVATE).expect("a mapping");
        shared.store(10, 1);
        private.store(11, 2);
        assert_eq!(shared.load(11), 0, "its stores stay private");
    }),
    check("map.by-any-thread", |cx| {
        let (device, map) = mapped(cx);
        let (mine, own) = mapped(cx);
        let shows_the_same = || {
            let again = device.map(COVER_SIZE).expect("a thread that is not the traced one maps");
            assert_eq!(again.copy(0, again.words()), map.copy(0, map.words()));
            again.unmap().expect("unmapped");
        };
        while_other_is_enabled(&device, || {
            assert!(settled(&map) > 0, "the other thread is traced");
            shows_the_same();
            // It makes no difference if this thread has enabled a device of its own.
            mine.enable(KCOV_TRACE_PC).expect("enabled");
            shows_the_same();
            mine.map(COVER_SIZE).expect("its own");
            assert!(own.count() > 0);
            mine.disable().expect("disabled");
        });
        let mapped_meanwhile = || {
            assert!(settled(&map) > 0, "it is traced before");
            shows_the_same();
        };
        other_stays_traced(&map, || enable_freed(&device, KCOV_TRACE_PC), mapped_meanwhile);
        // A comparison's type is a small number.
        assert!(map.load(1) >= 8, "and in the same mode: {:#x}", map.load(1));
    }),
];
