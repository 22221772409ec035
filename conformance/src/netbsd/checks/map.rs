//! `mmap`: what only NetBSD allows or refuses.

use super::*;
use libc::{PROT_EXEC, PROT_NONE};
use nix::sys::resource::{UsageWho, getrusage};

fn offset(bytes: usize) -> i64 {
    i64::try_from(bytes).expect("an offset")
}

fn greatest() -> usize {
    index(super::GREATEST) * 8
}

fn nothing(device: &Device) -> Result<()> {
    // An empty mapping cannot be unmapped: the kernel may refuse.
    device.map_with(0, 0, READ_WRITE, MAP_SHARED).map(std::mem::forget)
}

pub(crate) const CHECKS: &[Check] = &[
    check("map.shorter-is-accepted", |cx| {
        let (device, whole) = mapped_of(cx, 4 * page_words());
        let part = device.map(page_words()).expect("a part");
        whole.store(5, 1);
        assert_eq!(part.load(5), 1);
        let few = device.map_with(100, 0, READ_WRITE, MAP_SHARED).expect("less than a page");
        assert_eq!(few.load(5), 1);
    }),
    check("map.offset-shows-the-rest", |cx| {
        let (device, whole) = mapped_of(cx, 4 * page_words());
        for page in 1..4 {
            let start = page * page_size();
            let bytes = whole.bytes() - start;
            let rest = device.map_with(bytes, offset(start), READ_WRITE, MAP_SHARED);
            let rest = rest.expect("the rest");
            whole.store(start / 8 + 3, page as u64);
            assert_eq!(rest.load(3), page as u64);
        }
    }),
    on_device("map.offset-beyond-is-refused", two_pages, |cx, device| {
        let page = page_size();
        for (pages, start) in [(2, 1), (1, 2), (1, 3)] {
            let start = offset(start * page);
            cx.refused_by(&device, |it| it.map_with(pages * page, start, READ_WRITE, MAP_SHARED));
        }
    }),
    check("map.each-page-faults", |cx| {
        const PAGES: u16 = 64;
        let faults = || getrusage(UsageWho::RUSAGE_SELF).expect("the usage").minor_page_faults();
        let device = sized(cx, u64::from(PAGES) * page_words());
        let map = device.map(u64::from(PAGES) * page_words()).expect("the buffer is mapped");
        let before = faults();
        for page in 0..usize::from(PAGES) {
            assert_eq!(map.load(page * index(page_words())), 0);
        }
        let faults = faults() - before;
        assert!(faults >= PAGES.into(), "{faults} faults for {PAGES} pages");
    }),
    on_buffer("map.unaligned-offset-is-accepted", mapped_page, |_, device, whole| {
        let part = device.map_with(64, 64, READ_WRITE, MAP_SHARED).expect("from word 8 on");
        whole.store(8, 7);
        assert_eq!(part.load(0), 7);
    }),
    check("map.part-of-a-page-is-whole-pages", |cx| {
        for (entries, pages) in [(2, 1), (page_words(), 1), (page_words() + 1, 2)] {
            let device = sized(cx, entries);
            let bytes = pages * page_size();
            let map = device.map_with(bytes, 0, READ_WRITE, MAP_SHARED);
            map.expect("whole pages").store(pages * index(page_words()) - 1, 1);
            let more = device.map_with(bytes + 1, 0, READ_WRITE, MAP_SHARED);
            assert!(more.is_err(), "{entries} entries");
        }
    }),
    on_device("map.executable-is-refused", one_page, |cx, device| {
        for prot in [PROT_EXEC, PROT_READ | PROT_EXEC] {
            cx.refused_by(&device, |device| device.map_with(page_size(), 0, prot, MAP_SHARED));
        }
    }),
    on_device("map.access-cannot-be-added", one_page, |cx, device| {
        for prot in [PROT_NONE, PROT_READ, PROT_WRITE, READ_WRITE] {
            let map = device.map_with(page_size(), 0, prot, MAP_SHARED).expect("mapped");
            for more in PROT_READ..=READ_WRITE | PROT_EXEC {
                if prot & more != more {
                    cx.refused(map.protect_from(0, more));
                }
            }
            assert_eq!(map.protect_from(0, PROT_NONE), Ok(()), "it can be taken away");
            assert_eq!(map.protect_from(0, prot), Ok(()), "and given back");
        }
    }),
    on_device("map.negative-offset-is-refused", one_page, |cx, device| {
        cx.refused_by(&device, |device| {
            device.map_with(page_size(), -offset(page_size()), READ_WRITE, MAP_SHARED)
        });
    }),
    check("map.above-greatest-length-is-refused", |cx| {
        let device = sized(cx, super::GREATEST);
        cx.refused_by(&device, |device| device.map_with(greatest() + 1, 0, READ_WRITE, MAP_SHARED));
        // The length is checked before the size of the buffer.
        let unsized_device = super::open(cx);
        cx.refused_by(&unsized_device, |it| it.map_with(greatest() + 1, 0, READ_WRITE, MAP_SHARED));
    }),
    check("map.above-greatest-offset-is-refused", |cx| {
        let device = sized(cx, super::GREATEST);
        let beyond = offset(greatest() + page_size());
        cx.refused_by(&device, |it| it.map_with(page_size(), beyond, READ_WRITE, MAP_SHARED));
    }),
    check("map.greatest-offset-is-refused", |cx| {
        let device = sized(cx, super::GREATEST);
        cx.refused_by(&device, |device| {
            device.map_with(page_size(), offset(greatest()), READ_WRITE, MAP_SHARED)
        });
    }),
    check("map.zero-length-is-refused", |cx| cx.refused(nothing(&sized(cx, page_words())))),
    check("map.zero-length-is-accepted", |cx| {
        assert_eq!(nothing(&sized(cx, page_words())), Ok(()));
    }),
    check("map.open-mode-is-ignored", |cx| {
        for access in [OFlag::O_RDONLY, OFlag::O_WRONLY] {
            let device = sized_with(cx, access, page_words());
            let map = device.map(page_words()).expect("readable and writable");
            map.store(3, 9);
            assert_eq!(map.load(3), 9);
        }
    }),
    on_device("map.without-flags-is-accepted", one_page, |_, device| {
        let map = device.map_with(page_size(), 0, READ_WRITE, 0);
        assert_eq!(map.map(drop), Ok(()));
    }),
    on_buffer("map.private-stops-at-the-first-store", mapped_page, |_, device, _shared| {
        let private: Map =
            device.map_with(page_size(), 0, READ_WRITE, MAP_PRIVATE).expect("a private mapping");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        call();
        assert!(private.count() > 0, "until the first store it shows what the kernel writes");
        private.store(0, 0);
        call();
        assert_eq!(private.count(), 0, "after it nothing changes");
    }),
];
