//! `mmap`.

use super::LARGE;
use super::remote::enabled;
use super::truncate::fault;
use crate::checks::prelude::*;
use crate::errno::Result;
use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::fcntl::OFlag;
use nix::sys::mman::{MmapAdvise, madvise};
use nix::sys::signal::Signal;
use nix::unistd::{pipe, read, write};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::ptr::NonNull;

const READ_WRITE: i32 = PROT_READ | PROT_WRITE;

fn map_of_descriptor(cx: &Context, access: OFlag, prot: i32) -> Result<Map> {
    let device = Device::open_with(cx.device(), access).expect("the device opens");
    device.init_trace(page_words()).expect("sized");
    device.map_with(page_size(), 0, prot, MAP_SHARED)
}

pub(crate) const CHECKS: &[Check] = &[
    check("map.shorter-is-refused", |cx| {
        let device = sized(cx, 4 * page_words());
        for pages in 1..4 {
            cx.refused_by(&device, |device| device.map(pages * page_words()));
        }
    }),
    check("map.offset-is-refused", |cx| {
        let device = sized(cx, 2 * page_words());
        let page = page_size();
        for (pages, offset) in [(2, 1), (1, 1), (2, 2)] {
            let offset = i64::try_from(offset * page).expect("an offset");
            cx.refused_by(&device, |device| {
                device.map_with(pages * page, offset, READ_WRITE, MAP_SHARED)
            });
        }
    }),
    check("map.negative-offset-is-refused", |cx| {
        let device = sized(cx, page_words());
        let offset = -i64::try_from(page_size()).expect("an offset");
        cx.refused_by(&device, |device| {
            device.map_with(page_size(), offset, READ_WRITE, MAP_SHARED)
        });
        // The offset is checked before the access mode of the file descriptor.
        let device = Device::open_with(cx.device(), OFlag::O_WRONLY).expect("the device opens");
        cx.refused_by(&device, |device| {
            device.map_with(page_size(), offset, READ_WRITE, MAP_SHARED)
        });
    }),
    check("map.part-of-a-page-is-refused", |cx| {
        for words in [2, page_words() - 1, page_words() + 1] {
            let device = sized(cx, words);
            for length in [index(words) * word_bytes(), page_size(), 2 * page_size()] {
                cx.refused_by(&device, |device| device.map_with(length, 0, READ_WRITE, MAP_SHARED));
            }
        }
    }),
    check("map.write-to-read-only-descriptor-is-refused", |cx| {
        cx.refused(map_of_descriptor(cx, OFlag::O_RDONLY, READ_WRITE));
        cx.refused(map_of_descriptor(cx, OFlag::O_RDONLY, PROT_WRITE));
    }),
    check("map.write-only-descriptor-is-refused", |cx| {
        cx.refused(map_of_descriptor(cx, OFlag::O_WRONLY, READ_WRITE));
        cx.refused(map_of_descriptor(cx, OFlag::O_WRONLY, PROT_READ));
    }),
    check("map.growing-is-refused", |cx| {
        let kinds = [MAP_SHARED, MAP_PRIVATE];
        for (prot, kind) in [READ_WRITE, PROT_READ].into_iter().flat_map(|p| kinds.map(|k| (p, k)))
        {
            let device = sized(cx, page_words());
            let map = device.map_with(page_size(), 0, prot, kind).expect("mapped");
            cx.refused(map.remap(2 * page_size(), libc::MREMAP_MAYMOVE));
        }
    }),
    check("map.remapping-that-leaves-the-old-is-refused", |cx| {
        let (_device, map) = mapped_page(cx);
        cx.refused(map.remap(page_size(), libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP));
    }),
    check("map.shrink", |cx| {
        let (_device, map) = super::mapped_of(cx, 2 * page_words());
        assert_eq!(map.remap(page_size(), 0), Ok(()));
        map.store(1, 5);
        assert_eq!(map.load(1), 5);
    }),
    check("map.discarded-pages-are-gone", |cx| {
        let (device, map) = super::mapped_of(cx, 2 * page_words());
        let word = map.words() - 1;
        map.store(word, 5);
        assert_eq!((fault(&map, 0), fault(&map, word)), (None, None));
        let address = NonNull::new(map.address()).expect("an address");
        // SAFETY: the range is the mapping. From here on only children access it, and die.
        unsafe { madvise(address, map.bytes(), MmapAdvise::MADV_DONTNEED) }.expect("discarded");
        let signal = Some(Signal::SIGBUS);
        assert_eq!((fault(&map, 0), fault(&map, word)), (signal, signal));
        let again = device.map(2 * page_words()).expect("a new mapping");
        assert_eq!((again.load(word), fault(&map, word)), (5, signal));
    }),
    check("map.moved", |cx| {
        let (device, map) = mapped_page(cx);
        map.store(map.words() - 1, 5);
        let place = Map::anonymous(page_size()).expect("a place");
        let map = map.move_to(place.with_width(&device.width)).expect("it is moved");
        assert_eq!(map.load(map.words() - 1), 5);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(is_traced(&map));
    }),
    check("map.every-page-of-a-large-buffer", |cx| {
        let (device, map) = mapped_of(cx, LARGE);
        let pages = || (0..map.words()).step_by(index(page_words()));
        pages().for_each(|first| map.store(first, 1 + first as u64));
        let other = pages().find(|&first| map.load(first) != 1 + first as u64);
        assert_eq!(other, None, "this word is also another one");
        let last = map.words() - 1;
        map.store(0, last as u64 - 1);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        call();
        assert_ne!(map.load(last), 0, "the kernel's last record is seen");
    }),
    check("map.made-writable-later", |cx| {
        let device = sized(cx, page_words());
        let map =
            device.map_with(page_size(), 0, PROT_READ, MAP_SHARED).expect("a mapping to read");
        assert_eq!(map.protect_from(0, READ_WRITE), Ok(()));
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(is_traced(&map));
    }),
    check("map.read-by-another-process", |cx| {
        let (_device, map) = mapped_page(cx);
        map.store32(8, 5);
        let memory = format!("/proc/{}/mem", std::process::id());
        let place = map.address().expose_provenance() as u64 + 8;
        let seen = child(|| {
            let mut bytes = [0; 4];
            let memory = File::open(memory).expect("the memory of this process");
            memory.read_exact_at(&mut bytes, place).expect("the words are read");
            u32::from_ne_bytes(bytes)
        });
        assert_eq!(seen, 5);
    }),
    check("map.enabled-by-another-process", |cx| {
        let device = sized(cx, COVER_SIZE);
        let ((told, tells), (go, goes)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
        let child = Child::start(|| {
            device.enable(KCOV_TRACE_PC).expect("enabled");
            assert_eq!(write(&tells, b"!"), Ok(1));
            assert_eq!(read(&go, &mut [0]), Ok(1));
            call();
        });
        drop(tells);
        assert_eq!(read(&told, &mut [0]), Ok(1), "the child is enabled");
        let map = device.map(COVER_SIZE).expect("a mapping");
        let count = settled(&map);
        assert!(count > 0, "the mapping shows what was recorded before it");
        assert_eq!(write(&goes, b"!"), Ok(1));
        child.end();
        assert!(map.count() > count, "the child is still traced");
    }),
    check("map.keeps-sections-that-run", |cx| {
        let (device, map) = enabled(cx);
        let copies = Copies::new().expect("a ring");
        copies.begin();
        copies.wait();
        assert_eq!(settled(&map), 0, "its section has not ended");
        device.map(COVER_SIZE).expect("a second mapping").unmap().expect("unmapped");
        copies.give();
        copies.complete();
        assert!(wait_for(LONG, || map.count() > 0), "the section's records are discarded");
    }),
];
