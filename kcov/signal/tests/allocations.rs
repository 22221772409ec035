//! What a saved map from somewhere else makes this process allocate.

use kcov_signal::{NoveltyMap, Ranges};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, with a count of all bytes that it was ever asked for.
struct Counting;

static ASKED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are passed on to the system's allocator; counting changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of this method, which are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`; all memory came from the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The bytes that loading a map takes. The only test of this program, so nobody else allocates.
fn asked(saved: &[u8]) -> usize {
    let before = ASKED.load(Ordering::Relaxed);
    let map = NoveltyMap::from_bytes(saved);
    let asked = ASKED.load(Ordering::Relaxed) - before;
    assert!(map.is_ok(), "{map:?}");
    asked
}

#[test]
fn small_bytes_make_no_large_map() {
    // Miri would take minutes for the largest ranges.
    let (bytes, mebibytes) = if cfg!(miri) { (1 << 26, 8) } else { (Ranges::MAX_BYTES, 128) };
    let largest = || Ranges::single(0..bytes).unwrap();
    let empty = NoveltyMap::with_fallback(largest(), usize::MAX).to_bytes();
    assert_eq!((empty.len(), asked(&empty) >> 20), (60, mebibytes + 16));

    // Short ranges with gaps between them take the most memory for each byte of the file.
    let many = Ranges::new((0..8000).map(|start| start << 8..(start << 8) + 1)).unwrap();
    let saved = NoveltyMap::with_fallback(many, 0).to_bytes();
    assert!(asked(&saved) < 16 * saved.len(), "{} for {}", asked(&saved), saved.len());
}
