//! Which machine code looks at a block: chosen at run time, all of it from the same source.

use super::blocks::BLOCK;
use super::fallback::Fallback;
use super::ranges::Index;
use super::store::Store;

/// A way to look at a block of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// One signal at a time: the reference, which the others have to agree with.
    Scalar,
    /// In stages, each over the whole block, as the target's baseline has vectors for them.
    Blocks,
    /// The stages compiled for AVX2 and BMI2.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
}

impl Path {
    /// The fastest one that this processor has.
    pub(crate) fn detect() -> Path {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if has_avx2() {
            return Path::Avx2;
        }
        if cfg!(miri) { Path::Scalar } else { Path::Blocks }
    }

    /// All that this processor has.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Path> {
        let mut all = alloc::vec![Path::Scalar, Path::Blocks];
        if !all.contains(&Path::detect()) {
            all.push(Path::detect());
        }
        all.into_iter()
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_avx2() -> bool {
    cfg_if::cfg_if! {
        if #[cfg(feature = "std")] {
            std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("bmi2")
        } else {
            cfg!(all(target_feature = "avx2", target_feature = "bmi2"))
        }
    }
}

/// What a block is asked about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'m> {
    pub(crate) index: &'m Index,
    /// Invariant: made for the bytes of `index`.
    pub(crate) store: &'m Store,
    pub(crate) fallback: &'m Fallback,
}

impl Known<'_> {
    /// Whether a signal has been seen.
    #[inline]
    pub(crate) fn contains(self, signal: u64) -> bool {
        match self.index.offset(signal) {
            Some(offset) => self.store.contains(offset),
            None => self.fallback.contains(signal),
        }
    }

    /// Whether all signals of a block have been seen. A block is at most [`BLOCK`] signals.
    #[inline]
    pub(crate) fn contains_all(self, path: Path, block: &[u64]) -> bool {
        match path {
            Path::Scalar => block.iter().all(|&signal| self.contains(signal)),
            Path::Blocks => self.stages(block),
            // SAFETY: the path was chosen because the processor has both.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Path::Avx2 => unsafe { self.stages_avx2(block) },
        }
    }

    /// # Safety
    ///
    /// The processor has AVX2 and BMI2.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn stages_avx2(self, block: &[u64]) -> bool {
        self.stages(block)
    }

    #[inline(always)]
    fn stages(self, block: &[u64]) -> bool {
        let largest = self.index.largest();
        let mut offsets = [0; BLOCK];
        let mut outside = false;
        for (to, &signal) in offsets.iter_mut().zip(block) {
            let within = signal.wrapping_sub(largest.start);
            outside |= within >= largest.bytes;
            *to = (within as u32).wrapping_add(largest.offset as u32);
        }
        let offsets = &mut offsets[..block.len()];
        if !outside {
            // SAFETY: each offset is that of the span plus less than the span's bytes, and the
            // store was made for the bytes of all spans, by the invariant.
            return unsafe { self.store.contains_all(offsets) };
        }
        self.elsewhere(block, offsets)
    }

    /// For blocks that are not all in the largest span.
    #[inline(never)]
    fn elsewhere(self, block: &[u64], offsets: &mut [u32]) -> bool {
        let mut count = 0;
        for &signal in block {
            match self.index.offset(signal) {
                Some(offset) => {
                    offsets[count] = offset;
                    count += 1;
                }
                None if self.fallback.contains(signal) => {}
                None => return false,
            }
        }
        // SAFETY: `Index::offset` gives offsets that are less than its bytes, which the store was
        // made for, by the invariant.
        unsafe { self.store.contains_all(&offsets[..count]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Ranges;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const SMALL: u64 = 64 << 10;
    const LARGE: u64 = 32 << 20;

    /// Mostly among a few cells, sometimes elsewhere.
    fn signals() -> impl Strategy<Value = Vec<u64>> {
        let signal = prop_oneof![
            20 => 0x1000..0x1600u64,
            1 => 0..LARGE + 0x2000,
            1 => Just(0u64),
            1 => any::<u64>(),
        ];
        prop::collection::vec(signal, 0..=BLOCK)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 8 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// All paths say what the scalar one says.
        #[test]
        fn paths_agree(
            known in prop::collection::vec(signals(), 0..8),
            extra in any::<u64>(),
            large in any::<bool>(),
            at in any::<prop::sample::Index>(),
        ) {
            let bytes = if large && !cfg!(miri) { LARGE } else { SMALL };
            let ranges = Ranges::new([0x1000..0x1000 + bytes, 0xffff_0000..0xffff_1000]).unwrap();
            let index = Index::new(&ranges);
            let mut store = Store::new(index.bytes());
            let mut fallback = Fallback::new(2000);
            for &signal in known.iter().flatten() {
                match index.offset(signal) {
                    Some(offset) => { store.insert(offset); }
                    None => { fallback.insert(signal); }
                }
            }
            let known_map = Known { index: &index, store: &store, fallback: &fallback };
            for block in &known {
                for path in Path::all() {
                    prop_assert!(known_map.contains_all(path, block), "{:?}", path);
                }
                let mut block = block.clone();
                if !block.is_empty() {
                    let at = at.index(block.len());
                    for signal in [extra, block[at] ^ 1, block[at] ^ 512, 0x1000 + extra % 0x800] {
                        block[at] = signal;
                        let expected = known_map.contains_all(Path::Scalar, &block);
                        for path in Path::all() {
                            prop_assert_eq!(known_map.contains_all(path, &block), expected, "{:?}", path);
                        }
                    }
                }
            }
        }
    }
}
