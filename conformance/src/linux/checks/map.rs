//! `mmap`.

use super::remote::enabled;
use super::truncate::fault;
use super::*;
use nix::sys::mman::{MmapAdvise, madvise};
use std::os::unix::fs::FileExt as _;
use std::ptr::NonNull;

fn map_of_descriptor(cx: &Context, access: OFlag, prot: i32) -> Result<Map> {
    let device = sized_with(cx, access, page_words());
    device.map_with(page_size(), 0, prot, MAP_SHARED)
}

pub(crate) const CHECKS: &[Check] = &[
    check("map.shorter-is-refused", |cx| {
        let device = sized(cx, 4 * page_words());
        for pages in 1..4 {
            cx.refused_by(&device, |device| device.map(pages * page_words()));
        }
    }),
    on_device("map.offset-is-refused", two_pages, |cx, device| {
        let page = page_size();
        for (pages, offset) in [(2, 1), (1, 1), (2, 2)] {
            let offset = i64::try_from(offset * page).expect("an offset");
            cx.refused_by(&device, |it| it.map_with(pages * page, offset, READ_WRITE, MAP_SHARED));
        }
    }),
    on_device("map.negative-offset-is-refused", one_page, |cx, device| {
        let offset = -i64::try_from(page_size()).expect("an offset");
        cx.refused_by(&device, |it| it.map_with(page_size(), offset, READ_WRITE, MAP_SHARED));
        // The offset is checked before the access mode of the file descriptor.
        let device = Device::open_with(cx.device(), OFlag::O_WRONLY).expect("the device opens");
        cx.refused_by(&device, |it| it.map_with(page_size(), offset, READ_WRITE, MAP_SHARED));
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
    on_buffer("map.remapping-that-leaves-the-old-is-refused", mapped_page, |cx, _device, map| {
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
    on_buffer("map.moved", mapped_page, |_, device, map| {
        map.store(map.words() - 1, 5);
        let place = Map::anonymous(page_size()).expect("a place");
        let map = map.move_to(place.with_width(&device.width)).expect("it is moved");
        assert_eq!(map.load(map.words() - 1), 5);
        traces(&device, &map);
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
    on_device("map.made-writable-later", one_page, |_, device| {
        let map =
            device.map_with(page_size(), 0, PROT_READ, MAP_SHARED).expect("a mapping to read");
        assert_eq!(map.protect_from(0, READ_WRITE), Ok(()));
        traces(&device, &map);
    }),
    on_buffer("map.read-by-another-process", mapped_page, |_, _device, map| {
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
    on_device("map.enabled-by-another-process", usual, |_, device| {
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
    on_buffer("map.keeps-sections-that-run", enabled, |_, device, map| {
        let copies = Copies::held().expect("a ring");
        assert_eq!(settled(&map), 0, "its section has not ended");
        device.map(COVER_SIZE).expect("a second mapping").unmap().expect("unmapped");
        copies.give();
        copies.complete();
        assert!(wait_for(LONG, || map.count() > 0), "the section's records are discarded");
    }),
];
