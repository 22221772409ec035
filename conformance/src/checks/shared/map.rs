//! `mmap`.

use super::*;

pub(crate) const CHECKS: &[Check] = &[
    check("map.whole-buffer-shared", |cx| {
        // `map` makes the documented call.
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        assert_eq!(map.words() as u64, COVER_SIZE);
        assert!(is_traced(&map), "the kernel's stores are seen");
        map.store(0, 1000);
        call();
        assert!(map.count() > 1000, "the kernel sees this program's stores");
    }),
    on_buffer("map.unmap-and-close", collecting_pc, |_, device, map| {
        device.disable().expect("disabled");
        assert_eq!(map.unmap(), Ok(()));
        assert_eq!(device.close(), Ok(()));
    }),
    check("map.before-sizing-is-refused", |cx| {
        cx.refused_by(&open(cx), |device| device.map(page_words()));
    }),
    on_device("map.longer-is-refused", two_pages, |cx, device| {
        cx.refused_by(&device, |device| device.map(3 * page_words()));
        cx.refused_by(&device, |device| device.map(COVER_SIZE));
    }),
    on_device("map.length-is-rounded-to-pages", two_pages, |_, device| {
        let map = device.map_with(2 * page_size() - 1, 0, READ_WRITE, MAP_SHARED);
        assert_eq!(map.map(drop), Ok(()));
    }),
    on_buffer("map.several-show-the-same-words", mapped, |_, device, first| {
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
    on_device("map.while-enabled", enabled_pc, |_, device| {
        let map = device.map(COVER_SIZE).expect("a mapping");
        assert!(map.count() > 0, "the mapping shows what was recorded before it");
    }),
    on_device("map.not-needed-to-enable", usual, |_, device| {
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        call();
        assert_eq!(device.disable(), Ok(()));
    }),
    on_buffer("map.outlives-the-descriptor", mapped, |cx, device, map| {
        map.fill(0, SENTINEL);
        device.close().expect("closed");
        // If the kernel had freed the pages, these devices would get them, zeroed, and
        // share stores.
        let others: Vec<_> = (0..16).map(|_| mapped(cx)).collect();
        assert!(is_marked_from(&map, 0), "others have its pages");
        map.fill(0, !SENTINEL);
        for (_, other) in &others {
            assert!(is_zero(other), "it has others' pages");
        }
    }),
    on_buffer("map.unmap-while-enabled", collecting_pc, |_, device, map| {
        map.unmap().expect("unmapped");
        call();
        let map = device.map(COVER_SIZE).expect("a new mapping");
        assert!(is_traced(&map));
        assert_eq!(device.disable(), Ok(()));
    }),
    check("map.read-only", |cx| {
        let device = sized_with(cx, OFlag::O_RDONLY, COVER_SIZE);
        let bytes = index(COVER_SIZE) * word_bytes();
        let map = device.map_with(bytes, 0, PROT_READ, MAP_SHARED).expect("a mapping to read");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        let before = map.count();
        call();
        assert!(map.count() > before);
    }),
    on_buffer("map.private-is-accepted", mapped_page, |_, device, shared| {
        let private = device.map_with(page_size(), 0, READ_WRITE, MAP_PRIVATE).expect("a mapping");
        shared.store(10, 1);
        private.store(11, 2);
        assert_eq!(shared.load(11), 0, "its stores stay private");
    }),
    on_buffer("map.by-any-thread", mapped, |cx, device, map| {
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
        other_stays_traced(
            &map,
            || enable_freed(&device, KCOV_TRACE_PC),
            || {
                assert!(settled(&map) > 0, "it is traced before");
                shows_the_same();
            },
        );
        // A comparison's type is a small number.
        assert!(map.load(1) >= 8, "and in the same mode: {:#x}", map.load(1));
    }),
];
