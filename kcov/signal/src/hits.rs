//! Hit counts in a byte map, as used by AFL and its descendants.

use crate::signals::{Signals, for_each};

/// Counts each signal in a byte of the caller's map. The map can be AFL's shared memory, the map of
/// a LibAFL map observer, or libFuzzer's extra counters. It can have any size.
///
/// A hash spreads signals over the map, so several may share a byte. A count stops at 255. New
/// counts are added to existing ones, so clear the map before each execution.
pub fn count_hits(signals: impl Signals, map: &mut [u8]) {
    if map.is_empty() {
        return;
    }
    for_each(signals, |signal| {
        let byte = &mut map[place(signal, map.len())];
        *byte = byte.saturating_add(1);
    });
}

/// The index of a signal's count in a map of `len` bytes.
#[inline]
fn place(signal: u64, len: usize) -> usize {
    let hash = signal.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The high half of a product with the length is less than the length. No division needed.
    ((u128::from(hash) * len as u128) >> 64) as usize
}
