//! `mmap`.

use super::{
    COVER_SIZE, SENTINEL, index, is_sentinel, mapped, mapped_page, open, other_stays_traced, sized,
    while_other_is_enabled,
};
use crate::check::{Context, checks};
use crate::raw::{Device, KCOV_TRACE_PC, call, page_size, page_words, settled, word_bytes};
use crate::system::checks::enable_freed;
use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::fcntl::OFlag;

checks! {
    "map.whole-buffer-shared": whole_buffer_shared,
    "map.unmap-and-close": unmap_and_close,
    "map.before-sizing-is-refused": before_sizing_is_refused,
    "map.longer-is-refused": longer_is_refused,
    "map.length-is-rounded-to-pages": length_is_rounded_to_pages,
    "map.several-show-the-same-words": several_show_the_same_words,
    "map.while-enabled": while_enabled,
    "map.not-needed-to-enable": not_needed_to_enable,
    "map.outlives-the-descriptor": outlives_the_descriptor,
    "map.unmap-while-enabled": unmap_while_enabled,
    "map.read-only": read_only,
    "map.private-is-accepted": private_is_accepted,
    "map.by-any-thread": by_any_thread,
}

const READ_WRITE: i32 = PROT_READ | PROT_WRITE;

fn whole_buffer_shared(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    let bytes = index(COVER_SIZE) * word_bytes();
    let map = device.map_with(bytes, 0, READ_WRITE, MAP_SHARED).expect("the documented call");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    call();
    assert!(map.count() > 0, "the kernel's stores are seen");
    map.store(0, 1000);
    call();
    assert!(map.count() > 1000, "the kernel sees this program's stores");
}

fn unmap_and_close(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.disable().expect("disabled");
    assert_eq!(map.unmap(), Ok(()));
    assert_eq!(device.close(), Ok(()));
}

fn before_sizing_is_refused(cx: &Context) {
    cx.refused_by(&open(cx), |device| device.map(page_words()));
}

fn longer_is_refused(cx: &Context) {
    let device = sized(cx, 2 * page_words());
    cx.refused_by(&device, |device| device.map(3 * page_words()));
    cx.refused_by(&device, |device| device.map(COVER_SIZE));
}

fn length_is_rounded_to_pages(cx: &Context) {
    let device = sized(cx, 2 * page_words());
    let map = device.map_with(2 * page_size() - 1, 0, READ_WRITE, MAP_SHARED);
    assert_eq!(map.map(drop), Ok(()));
}

fn several_show_the_same_words(cx: &Context) {
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
}

fn while_enabled(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let map = device.map(COVER_SIZE).expect("a mapping");
    assert!(map.count() > 0, "the mapping shows what was recorded before it");
}

fn not_needed_to_enable(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    call();
    assert_eq!(device.disable(), Ok(()));
}

fn outlives_the_descriptor(cx: &Context) {
    let (device, map) = mapped(cx);
    map.fill(0, SENTINEL);
    device.close().expect("closed");
    // If the kernel had freed the pages, these devices would get them, zeroed, and share stores.
    let others: Vec<_> = (0..16).map(|_| mapped(cx)).collect();
    assert!(map.copy(0, map.words()).iter().all(is_sentinel), "others have its pages");
    map.fill(0, !SENTINEL);
    for (_device, other) in &others {
        assert!(other.copy(0, other.words()).iter().all(|&word| word == 0), "it has others' pages");
    }
}

fn unmap_while_enabled(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    map.unmap().expect("unmapped");
    call();
    let map = device.map(COVER_SIZE).expect("a new mapping");
    map.reset();
    call();
    assert!(map.count() > 0);
    assert_eq!(device.disable(), Ok(()));
}

fn read_only(cx: &Context) {
    let device = Device::open_with(cx.device(), OFlag::O_RDONLY).expect("the device opens");
    device.init_trace(COVER_SIZE).expect("sized");
    let bytes = index(COVER_SIZE) * word_bytes();
    let map = device.map_with(bytes, 0, PROT_READ, MAP_SHARED).expect("a mapping to read");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let before = map.count();
    call();
    assert!(map.count() > before);
}

fn private_is_accepted(cx: &Context) {
    let (device, shared) = mapped_page(cx);
    let private = device.map_with(page_size(), 0, READ_WRITE, MAP_PRIVATE).expect("a mapping");
    shared.store(10, 1);
    private.store(11, 2);
    assert_eq!(shared.load(11), 0, "its stores stay private");
}

fn by_any_thread(cx: &Context) {
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
}
