//! Which machine code looks at a block: chosen at run time, all of it from the same source.

use super::fallback::Fallback;
use super::ranges::Index;
use super::store::Store;

/// A way to look at a block of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// One signal at a time: the reference, which the others have to agree with.
    Scalar,
    /// Eight signals at a time, without checks of bounds that are known to hold.
    Blocks,
    /// The same, compiled for BMI1 and BMI2, whose shifts need no fixed register.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Bmi2,
}

impl Path {
    /// The fastest one that this processor has.
    pub(crate) fn detect() -> Path {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if has_bmi2() {
            return Path::Bmi2;
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
fn has_bmi2() -> bool {
    cfg_if::cfg_if! {
        if #[cfg(feature = "std")] {
            std::arch::is_x86_feature_detected!("bmi1")
                && std::arch::is_x86_feature_detected!("bmi2")
        } else {
            cfg!(all(target_feature = "bmi1", target_feature = "bmi2"))
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

    /// Whether all signals of a block have been seen.
    #[inline]
    pub(crate) fn contains_all(self, path: Path, block: &[u64]) -> bool {
        match path {
            Path::Scalar => block.iter().all(|&signal| self.contains(signal)),
            Path::Blocks => self.unrolled(block),
            // SAFETY: the path was chosen because the processor has both.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Path::Bmi2 => unsafe { self.unrolled_bmi2(block) },
        }
    }

    /// # Safety
    ///
    /// The processor has BMI1 and BMI2.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "bmi1,bmi2")]
    unsafe fn unrolled_bmi2(self, block: &[u64]) -> bool {
        self.unrolled(block)
    }

    #[inline(always)]
    fn unrolled(self, block: &[u64]) -> bool {
        match self.store {
            // SAFETY: the offset is less than the bytes of the store, by the duty of the closure.
            Store::Flat(flat) => self.each(block, |offset| unsafe { flat.contains_at(offset) }),
            // SAFETY: as above.
            Store::Packed(packed) => {
                // SAFETY: as above.
                self.each(block, |offset| unsafe { packed.contains_at(offset) })
            }
        }
    }

    /// Whether `seen` says so of the offsets of all signals, or the fallback of those without one.
    /// The offsets are less than the bytes of the index, for which the store was made.
    #[inline(always)]
    fn each(self, block: &[u64], seen: impl Fn(u32) -> bool) -> bool {
        let largest = self.index.largest();
        let known = |signal: u64| {
            let within = signal.wrapping_sub(largest.start);
            if within < largest.bytes {
                seen((largest.offset + within) as u32)
            } else {
                self.elsewhere(signal)
            }
        };
        let mut eights = block.chunks_exact(8);
        for eight in eights.by_ref() {
            // Unrolled, with branches that are foretold: the loop itself would cost as much as what
            // it does, and vectors of words would have to be put together from single loads.
            let &[a, b, c, d, e, f, g, h] = eight else { unreachable!("eight of them") };
            if !(known(a) && known(b) && known(c) && known(d)) {
                return false;
            }
            if !(known(e) && known(f) && known(g) && known(h)) {
                return false;
            }
        }
        eights.remainder().iter().all(|&signal| known(signal))
    }

    /// A signal that is not in the largest span.
    #[cold]
    #[inline(never)]
    fn elsewhere(self, signal: u64) -> bool {
        self.contains(signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Ranges;
    use crate::signal::blocks::BLOCK;
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
