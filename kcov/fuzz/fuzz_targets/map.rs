//! Saved maps: `cargo +nightly fuzz run map` in `kcov/`. Whatever the bytes, reading ends without a
//! panic, and what is taken for a map is what this crate would write.
#![no_main]

use kcov_signal::NoveltyMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = NoveltyMap::from_bytes(bytes);
    if let Ok(map) = read {
        assert_eq!(map.to_bytes(), bytes);
    }
});
