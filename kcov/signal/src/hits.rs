//! Hit counts in a map of bytes, as AFL's descendants read them.

use super::blocks::for_each;
use super::blocks::sealed::Source;

/// Counts each signal in a byte of the caller's map, of any size: AFL's shared memory, a map
/// observer's of LibAFL, or libFuzzer's extra counters.
///
/// Signals are spread over the map by a hash, so several may share a byte. A count stays at 255.
/// Counts are added to those that are there: clear the map before each execution.
pub fn count_hits(signals: impl Source, map: &mut [u8]) {
    if map.is_empty() {
        return;
    }
    for_each(signals, |signal| {
        let byte = &mut map[place(signal, map.len())];
        *byte = byte.saturating_add(1);
    });
}

/// Where a signal counts in a map of `len` bytes.
#[inline]
fn place(signal: u64, len: usize) -> usize {
    let hash = signal.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The high half of a product with the length is less than the length, and needs no division.
    ((u128::from(hash) * len as u128) >> 64) as usize
}

/// Replaces counts by AFL's classes: 0, 1, 2 and 3 become 0, 1, 2 and 4; from 4 it is 8, from 8 16,
/// from 16 32, from 32 64, and from 128 128.
///
/// libFuzzer, and LibAFL's hit-count observer, do this themselves.
pub fn classify(map: &mut [u8]) {
    for count in map {
        *count = CLASSES[usize::from(*count)];
    }
}

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut count = 1;
    while count < 256 {
        classes[count] = match count {
            1 => 1,
            2 => 2,
            3 => 4,
            4..=7 => 8,
            8..=15 => 16,
            16..=31 => 32,
            32..=127 => 64,
            _ => 128,
        };
        count += 1;
    }
    classes
};
