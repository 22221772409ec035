//! Dictionaries of the numbers that the kernel compared with.

use crate::failure::{Failure, Handle as _, enter, free, guard, handle};
use crate::memory::{Output, words};
use kcov::Comparison;
use kcov_signal::{CmpFilter, Dictionary};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Leaves out comparisons of equal operands: the input already has the right value.
pub const KCOV_SKIP_EQUAL: u32 = 1;
/// Leaves out comparisons in which an operand is 0.
pub const KCOV_SKIP_ZERO: u32 = 2;
/// Leaves out comparisons of two variables.
pub const KCOV_ONLY_CONST: u32 = 4;

/// A bounded set of the numbers that the kernel has compared with.
pub struct kcov_dictionary(Mutex<Dictionary>);
handle!(kcov_dictionary: Dictionary);

/// Bytes for an input: the first `size` of `bytes`, which are 1, 2, 4 or 8.
#[repr(C)]
#[derive(Debug)]
pub struct kcov_token {
    pub bytes: [u8; 8],
    pub size: u8,
}

/// Makes an empty dictionary that holds at most `capacity` numbers. NULL on failure.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_dictionary_new(capacity: usize) -> Option<Box<kcov_dictionary>> {
    guard("kcov_dictionary_new", None, || Ok(Some(kcov_dictionary::new(Dictionary::new(capacity)))))
}

/// Adds the constants of comparisons, or both operands where neither is constant. `words` has four
/// words for each record, as in a buffer. `filter` is 0 or KCOV_SKIP_EQUAL and its like. Returns
/// how many comparisons added a number, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_dictionary_add(
    dictionary: *mut kcov_dictionary,
    words: *const u64,
    records: usize,
    filter: u32,
) -> i64 {
    guard("kcov_dictionary_add", -1, || {
        let mut chosen = CmpFilter::new();
        for (flag, add) in [
            (KCOV_SKIP_EQUAL, CmpFilter::skip_equal as fn(CmpFilter) -> CmpFilter),
            (KCOV_SKIP_ZERO, CmpFilter::skip_zero),
            (KCOV_ONLY_CONST, CmpFilter::only_const),
        ] {
            if filter & flag != 0 {
                chosen = add(chosen);
            }
        }
        if filter & !(KCOV_SKIP_EQUAL | KCOV_SKIP_ZERO | KCOV_ONLY_CONST) != 0 {
            return Err(Failure::argument(format!("unknown flags in `filter`: {filter:#x}")));
        }
        // SAFETY: as the header demands. Too many records are too many words.
        let words = unsafe { self::words(words, records.saturating_mul(4), "words") }?;
        let comparisons = words.chunks_exact(4).map(|record| {
            let word = |index: usize| record[index].load(Ordering::Relaxed);
            Comparison::from_words([word(0), word(1), word(2), word(3)])
        });
        // SAFETY: as the header demands.
        let mut dictionary = unsafe { enter(dictionary) }?;
        let added = chosen.of(comparisons).filter(|operands| dictionary.add(*operands)).count();
        Ok(added as i64)
    })
}

/// The number of tokens, or -1: each number with its least significant byte first, then in the
/// other byte order if that differs. Stores the first `capacity` tokens to `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_dictionary_tokens(
    dictionary: *mut kcov_dictionary,
    out: *mut kcov_token,
    capacity: usize,
) -> i64 {
    guard("kcov_dictionary_tokens", -1, || {
        // SAFETY: as the header demands.
        let out = unsafe { Output::new(out, capacity) }?;
        // SAFETY: as the header demands.
        let dictionary = unsafe { enter(dictionary) }?;
        Ok(out.fill(dictionary.tokens().map(|token| {
            let mut bytes = [0; 8];
            bytes[..token.as_bytes().len()].copy_from_slice(token.as_bytes());
            kcov_token { bytes, size: token.as_bytes().len() as u8 }
        })))
    })
}

/// How often a number did not fit, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_dictionary_missed(dictionary: *mut kcov_dictionary) -> i64 {
    guard("kcov_dictionary_missed", -1, || {
        // SAFETY: as the header demands.
        Ok(unsafe { enter(dictionary) }?.missed() as i64)
    })
}

/// Frees the dictionary. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_dictionary_free(dictionary: Option<Box<kcov_dictionary>>) {
    free(dictionary);
}
