//! `mmap`.

use super::truncate::fault;
use super::{index, mapped_page, sized};
use crate::check::{Context, checks};
use crate::errno::Result;
use crate::raw::{Device, Map, page_size, page_words, word_bytes};
use libc::{MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::fcntl::OFlag;
use nix::sys::mman::{MmapAdvise, madvise};
use nix::sys::signal::Signal;
use std::ptr::NonNull;

checks! {
    shorter_is_refused,
    offset_is_refused without(UniqModes),
    negative_offset_is_refused needs(Long64),
    part_of_a_page_is_refused,
    write_to_read_only_descriptor_is_refused,
    write_only_descriptor_is_refused,
    growing_is_refused,
    remapping_that_leaves_the_old_is_refused,
    shrink,
    discarded_pages_are_gone,
}

const READ_WRITE: i32 = PROT_READ | PROT_WRITE;

fn shorter_is_refused(cx: &Context) {
    let device = sized(cx, 4 * page_words());
    for pages in 1..4 {
        cx.refused_by(&device, |device| device.map(pages * page_words()));
    }
}

fn offset_is_refused(cx: &Context) {
    let device = sized(cx, 2 * page_words());
    let page = page_size();
    for (pages, offset) in [(2, 1), (1, 1), (2, 2)] {
        let offset = i64::try_from(offset * page).expect("an offset");
        cx.refused_by(&device, |device| {
            device.map_with(pages * page, offset, READ_WRITE, MAP_SHARED)
        });
    }
}

fn negative_offset_is_refused(cx: &Context) {
    let device = sized(cx, page_words());
    let offset = -i64::try_from(page_size()).expect("an offset");
    cx.refused_by(&device, |device| device.map_with(page_size(), offset, READ_WRITE, MAP_SHARED));
    // The offset is checked before the access mode of the file descriptor.
    let device = Device::open_with(cx.device(), OFlag::O_WRONLY).expect("the device opens");
    cx.refused_by(&device, |device| device.map_with(page_size(), offset, READ_WRITE, MAP_SHARED));
}

fn part_of_a_page_is_refused(cx: &Context) {
    for words in [2, page_words() - 1, page_words() + 1] {
        let device = sized(cx, words);
        for length in [index(words) * word_bytes(), page_size(), 2 * page_size()] {
            cx.refused_by(&device, |device| device.map_with(length, 0, READ_WRITE, MAP_SHARED));
        }
    }
}

fn write_to_read_only_descriptor_is_refused(cx: &Context) {
    cx.refused(map_of_descriptor(cx, OFlag::O_RDONLY, READ_WRITE));
    cx.refused(map_of_descriptor(cx, OFlag::O_RDONLY, PROT_WRITE));
}

fn write_only_descriptor_is_refused(cx: &Context) {
    cx.refused(map_of_descriptor(cx, OFlag::O_WRONLY, READ_WRITE));
    cx.refused(map_of_descriptor(cx, OFlag::O_WRONLY, PROT_READ));
}

fn map_of_descriptor(cx: &Context, access: OFlag, prot: i32) -> Result<Map> {
    let device = Device::open_with(cx.device(), access).expect("the device opens");
    device.init_trace(page_words()).expect("sized");
    device.map_with(page_size(), 0, prot, MAP_SHARED)
}

fn growing_is_refused(cx: &Context) {
    let (_device, map) = mapped_page(cx);
    cx.refused(map.remap(2 * page_size(), libc::MREMAP_MAYMOVE));
}

fn remapping_that_leaves_the_old_is_refused(cx: &Context) {
    let (_device, map) = mapped_page(cx);
    cx.refused(map.remap(page_size(), libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP));
}

fn shrink(cx: &Context) {
    let (_device, map) = super::mapped_of(cx, 2 * page_words());
    assert_eq!(map.remap(page_size(), 0), Ok(()));
    map.store(1, 5);
    assert_eq!(map.load(1), 5);
}

fn discarded_pages_are_gone(cx: &Context) {
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
}
