//! All paths agree with the scalar path.

use super::*;
use crate::known::{Known, Unsure};
use crate::merge::Remember;
use crate::run::Run;
use crate::signals::BLOCK;
use crate::{NoveltyMap, Ranges, SharedMap};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use proptest::prelude::*;

const BYTES: u64 = 64 << 10;

/// Mostly in a few words of the map, sometimes elsewhere.
fn signals() -> impl Strategy<Value = Vec<u64>> {
    let signal = prop_oneof![
        20 => 0x1000..0x1600u64,
        1 => 0..BYTES + 0x2000,
        1 => Just(0u64),
        1 => any::<u64>(),
    ];
    // Several blocks, whole and partial.
    prop::collection::vec(signal, 0..=if cfg!(miri) { BLOCK } else { 4 * BLOCK })
}

fn ranges(first: bool) -> Ranges {
    // The largest range comes first or second.
    let small = if first { 0xffff_0000..0xffff_1000 } else { 0x200..0x400 };
    Ranges::new([0x1000..0x1000 + BYTES, small]).unwrap()
}

/// The new signals found by one path, queried in both ways.
fn new_by(path: Path, known: Known<'_>, signals: &[u64]) -> Vec<u64> {
    let known = Known { path, ..known };
    let run = Run::Plain(signals);
    let mut unsure = Unsure::new();
    let pieces = run.pieces(Unsure::PIECE);
    let mut new: Vec<u64> = pieces.flat_map(|piece| unsure.of(known, piece).to_vec()).collect();
    new.retain(|signal| !known.contains(*signal));
    assert_eq!(known.contains_all(run), new.is_empty(), "{path:?}");
    new
}

/// One new signal is found at any position, even if it differs from a known one only in bits that
/// the map's words do not hold.
#[test]
fn one_is_missed_nowhere() {
    let end = 0x1000 + BYTES;
    let mut map = NoveltyMap::new(ranges(true));
    let seen: Vec<u64> = [end - 512, end - 64].into_iter().chain(end - 5..end).collect();
    map.merge(&seen);
    let new = [
        end - 6,
        end,
        end - 1 + 64,
        end - 1 + 512,
        end - 1 + (1 << 32),
        (end - 1).wrapping_sub(1 << 32),
        0x0fff,
        u64::MAX,
    ];
    assert!(new.iter().all(|new| !map.contains(*new)));
    for len in [1, 8, 9, 24, 127, 128, 136, 144, 152, 256, 280, 3 * BLOCK + 7] {
        let mut signals: Vec<u64> = seen.iter().copied().cycle().take(len).collect();
        for path in Path::all() {
            assert_eq!(new_by(path, map.known(), &signals), []);
        }
        for at in (0..len).rev().step_by(if cfg!(miri) { 97 } else { 1 }) {
            let before = signals[at];
            for new in new {
                signals[at] = new;
                for path in Path::all() {
                    let found = new_by(path, map.known(), &signals);
                    assert_eq!(found, [new], "{path:?}: {new:#x} at {at} of {len}");
                }
            }
            signals[at] = before;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// All paths agree with the scalar path on all kinds of maps.
    #[test]
    fn paths_agree(
        known in prop::collection::vec(signals(), 0..8),
        extra in any::<u64>(),
        first in any::<bool>(),
        empty in prop::bool::weighted(0.1),
        at in any::<prop::sample::Index>(),
    ) {
        let ranges = if empty { Ranges::default() } else { ranges(first) };
        let mut map = NoveltyMap::new(ranges.clone());
        let memory: Vec<AtomicU64> =
            (0..SharedMap::words(&ranges, 4096)).map(|_| AtomicU64::new(0)).collect();
        let shared = SharedMap::with_fallback(&memory, &ranges, 4096).unwrap();
        for block in &known {
            map.merge(block);
            shared.merge(block);
        }
        let seen: BTreeSet<u64> = known.iter().flatten().copied().collect();
        let expect = |block: &[u64]| {
            let expected: Vec<u64> = block.iter().copied().filter(|s| !seen.contains(s)).collect();
            for path in Path::all() {
                for map in [map.known(), shared.known()] {
                    prop_assert_eq!(&new_by(path, map, block), &expected, "{:?}", path);
                }
            }
            Ok(())
        };
        for block in &known {
            expect(block)?;
            // Many new signals among others, then one.
            let many: Vec<u64> = block.iter().map(|signal| signal ^ (extra & signal & 3)).collect();
            expect(&many)?;
            let mut block = block.clone();
            if !block.is_empty() {
                let at = at.index(block.len());
                for signal in [extra, block[at] ^ 1, block[at] ^ 512, 0x1000 + extra % 0x800] {
                    block[at] = signal;
                    expect(&block)?;
                }
            }
        }
    }
}
