//! Saved maps: `cargo +nightly fuzz run map` in `kcov/`. With any bytes, loading ends without a
//! panic; a map that it accepts is what this crate would have written.
#![no_main]

use kcov_signal::NoveltyMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = NoveltyMap::from_bytes(bytes);
    if let Ok(map) = read {
        assert_eq!(map.to_bytes(), bytes);
    }
});
