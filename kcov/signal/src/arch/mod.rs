//! Code paths that look up signals, chosen at run time.
//!
//! [`generic`] runs everywhere. Each architecture-specific path has its own module, with a type
//! that exists only if the processor has the instructions. The assembly of x86-64 takes addresses and
//! indices in whole registers, so x32, which has 32-bit pointers, uses the generic path.

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
mod avx2;
mod generic;

use crate::known::Known;
use crate::run::Run;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
use avx2::Avx2;

/// A way to look up signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Rules nothing out, so each signal is looked up by itself. The reference for the others.
    Scalar,
    Generic,
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
    Avx2(Avx2),
}

impl Path {
    /// The fastest path on this processor.
    #[inline]
    pub(crate) fn detect() -> Path {
        #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
        if let Some(avx2) = Avx2::detect() {
            return Path::Avx2(avx2);
        }
        if cfg!(miri) { Path::Scalar } else { Path::Generic }
    }

    /// All paths on this processor.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Path> {
        let mut all = alloc::vec![Path::Scalar, Path::Generic];
        if !all.contains(&Path::detect()) {
            all.push(Path::detect());
        }
        all.into_iter()
    }

    /// Calls `unsure`, in order, with each signal that may be new: all new ones, and few known
    /// ones. Stops and returns false once `unsure` returns false.
    ///
    /// `MANY` expects many new signals, and avoids branches that the processor would mispredict.
    #[inline]
    pub(crate) fn scan<const MANY: bool>(
        self,
        known: Known<'_>,
        run: Run<'_>,
        unsure: impl FnMut(u64) -> bool,
    ) -> bool {
        match self {
            Path::Scalar => run.all(unsure),
            Path::Generic => generic::scan(known, run, unsure),
            #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
            Path::Avx2(avx2) => avx2.scan::<MANY>(known, run, unsure),
        }
    }
}

#[cfg(test)]
mod tests;
