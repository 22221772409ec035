//! Sources of signals. Everything in this crate reads runs of words.

use crate::run::Run;
use alloc::vec::Vec;
use core::ops::ControlFlow;
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use kcov::mode::TracePc;
use kcov::{Pc, Trace, Words};

/// Signals copied to the stack at a time, if they cannot be read in place.
pub(crate) const BLOCK: usize = 128;

mod sealed {
    /// Only this crate can name or construct it, so only this crate can call a method that takes
    /// it, or implement a trait with such a method.
    #[derive(Debug)]
    pub struct Internal(pub(crate) ());
}

pub(crate) use sealed::Internal;

/// A sequence of signals: the numbers that a map remembers.
///
/// Each PC is a signal. PCs come from a [`Trace`] of [`TracePc`], which reads a live buffer in place, or
/// from a slice of words or [`Pc`]s. [`Edges`](crate::Edges) turns PCs into edges, which are signals too.
///
/// Slices of atomics may change while they are read. A changing word counts as its old value, as
/// its new value, or not at all.
///
/// Sealed: only this crate implements this trait.
pub trait Signals: Sized {
    #[doc(hidden)]
    fn runs<F>(self, token: Internal, f: F) -> ControlFlow<()>
    where
        F: FnMut(Run<'_>) -> ControlFlow<()>;
}

/// Calls `f` for each run of signals until it breaks.
#[inline]
pub(crate) fn runs(
    signals: impl Signals,
    f: impl FnMut(Run<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    signals.runs(Internal(()), f)
}

/// Calls `f` for each signal, in order.
#[inline]
pub(crate) fn for_each(signals: impl Signals, mut f: impl FnMut(u64)) {
    let _ = runs(signals, |run| {
        run.for_each(&mut f);
        ControlFlow::Continue(())
    });
}

/// Copies signals to the stack in blocks and calls `f` for each block.
#[inline]
fn blocks<T>(
    items: &[T],
    signal: impl Fn(&T) -> u64,
    mut f: impl FnMut(Run<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut block = [0; BLOCK];
    for items in items.chunks(BLOCK) {
        block.iter_mut().zip(items).for_each(|(to, item)| *to = signal(item));
        f(Run::Plain(&block[..items.len()]))?;
    }
    ControlFlow::Continue(())
}

/// Words of 64 bits as atomics.
#[inline]
fn in_place(words: Words<'_>) -> Option<&[AtomicU64]> {
    let start = words.as_ptr()?.cast();
    // SAFETY: `Words::as_ptr` promises that many words for atomic loads, for as long as `words` may
    // be used. `Run` only loads.
    Some(unsafe { slice::from_raw_parts(start, words.len()) })
}

/// Copies words of 32 bits to the stack in blocks and calls `f` for each block.
fn narrow(words: Words<'_>, f: &mut dyn FnMut(Run<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut words = (0..words.len()).filter_map(|index| words.get(index));
    let mut block = [0; BLOCK];
    loop {
        let count = block.iter_mut().zip(&mut words).map(|(to, word)| *to = word).count();
        if count == 0 {
            return ControlFlow::Continue(());
        }
        f(Run::Plain(&block[..count]))?;
    }
}

/// Implements [`Signals`] for a type: an expression that calls `$f` for the runs of `$this`.
macro_rules! signals {
    ([$($generics:tt)*] $type:ty: |$this:ident, $f:ident| $runs:expr) => {
        impl<$($generics)*> Signals for $type {
            #[inline]
            fn runs<F>(self, _: Internal, mut $f: F) -> ControlFlow<()>
            where
                F: FnMut(Run<'_>) -> ControlFlow<()>,
            {
                let $this = self;
                $runs
            }
        }
    };
}

signals!([] &[u64]: |words, f| f(Run::Plain(words)));
signals!([] &[AtomicU64]: |words, f| f(Run::Shared(words)));
signals!([] &[AtomicU32]: |words, f| blocks(words, |word| word.load(Ordering::Relaxed).into(), &mut f));
signals!([] &[Pc]: |pcs, f| blocks(pcs, |pc| pc.address(), &mut f));
signals!([const N: usize] &[u64; N]: |words, f| f(Run::Plain(words)));
signals!([] &Vec<u64>: |words, f| f(Run::Plain(words)));
signals!([] &Vec<Pc>: |pcs, f| blocks(pcs, |pc| pc.address(), &mut f));
signals!([] Trace<'_, TracePc>: |trace, f| match in_place(trace.words()) {
    Some(words) => f(Run::Shared(words)),
    None => narrow(trace.words(), &mut f),
});
signals!([] &Trace<'_, TracePc>: |trace, f| runs(*trace, &mut f));
