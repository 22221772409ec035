//! Comparisons of the kernel as LibAFL's own structures, for its input-to-state mutators.

use crate::CompareExecutor;
use kcov::Trace;
use kcov::mode::TraceCmp;
use kcov_signal::{CmpFilter, Dictionary, Operands};
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::mutators::Tokens;
use libafl::observers::{CmpValues, CmpValuesMetadata};
use libafl::stages::Stage;
use libafl::state::{HasCurrentTestcase, HasExecutions};
use libafl::{Error, HasMetadata};
use std::borrow::Cow;
use std::collections::HashMap;
use std::marker::PhantomData;

/// An input in which the operands of the kernel's comparisons can be found and replaced.
pub trait Search {
    /// The parts that may hold operands: byte strings, and numbers as little-endian bytes.
    fn parts(&self) -> Vec<Cow<'_, [u8]>>;

    /// Replaces a part. `bytes` has the part's length.
    fn set_part(&mut self, number: usize, bytes: &[u8]);
}

impl Search for BytesInput {
    fn parts(&self) -> Vec<Cow<'_, [u8]>> {
        vec![self.mutator_bytes().into()]
    }

    fn set_part(&mut self, _: usize, bytes: &[u8]) {
        self.mutator_bytes_mut().copy_from_slice(bytes);
    }
}

/// The number of a part and the place in it, for each place that contains these bytes.
pub(crate) fn places<'a>(
    parts: &'a [Cow<'_, [u8]>],
    bytes: &'a [u8],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    parts.iter().enumerate().flat_map(move |(number, part)| {
        let windows = part.windows(bytes.len()).enumerate();
        windows.filter(move |(_, window)| *window == bytes).map(move |(at, _)| (number, at))
    })
}

/// A stage that runs the current input in comparison mode, once for each input.
///
/// It leaves in the state:
///
/// - [`CmpValuesMetadata`] with the comparisons whose operands occur in the input, for
///   [`I2SRandReplace`](libafl::mutators::I2SRandReplace). The first value is flagged as constant if
///   the compiler knew it. A comparison comes in its own width and in each smaller one that holds
///   both operands, because the kernel may have extended them.
/// - [`Tokens`] with the constants of all comparisons, in both byte orders.
///
/// Put the stage before the one that mutates.
#[derive(Debug)]
pub struct ComparisonStage<I> {
    dictionary: Dictionary,
    input: PhantomData<fn(&I)>,
}

/// The largest number of constants in the dictionary.
const CONSTANTS: usize = 4096;

impl<I> ComparisonStage<I> {
    /// A stage that uses all comparisons of unequal operands.
    #[must_use]
    pub fn new() -> ComparisonStage<I> {
        ComparisonStage { dictionary: Dictionary::new(CONSTANTS), input: PhantomData }
    }

    /// Adds the constants to the dictionary. Returns whether any was new.
    fn learn<'o>(&mut self, all: impl Iterator<Item = &'o Operands>) -> bool {
        let before = self.dictionary.len();
        // Zeros and ones are everywhere.
        let constants = CmpFilter::new().only_const().skip_small(1);
        let admitted = all.filter(|operands| constants.admits(**operands));
        admitted.for_each(|operands| _ = self.dictionary.add(*operands));
        self.dictionary.len() > before
    }
}

impl<I> Default for ComparisonStage<I> {
    fn default() -> ComparisonStage<I> {
        ComparisonStage::new()
    }
}

impl<E, EM, I, S, Z> Stage<E, EM, S, Z> for ComparisonStage<I>
where
    E: CompareExecutor<I>,
    I: Search + Clone,
    S: HasCurrentTestcase<I> + HasExecutions + HasMetadata,
{
    fn perform(
        &mut self,
        _: &mut Z,
        executor: &mut E,
        state: &mut S,
        _: &mut EM,
    ) -> Result<(), Error> {
        let known = state
            .current_testcase()?
            .metadata::<CmpValuesMetadata>()
            .map(|known| known.list.clone());
        if let Ok(list) = known {
            state.metadata_or_insert_with(CmpValuesMetadata::new).list = list;
            return Ok(());
        }
        let input = state.current_input_cloned()?;
        // Once for all places that compare the same.
        let mut all = HashMap::new();
        let key = |one: Operands| ((one.unsigned(), one.size(), one.is_const()), one);
        *state.executions_mut() += 1;
        let filter = CmpFilter::new().skip_equal();
        let mut look = |trace: Trace<'_, TraceCmp>| all.extend(filter.of(trace.iter()).map(key));
        executor.compare(&input, &mut look)?;
        if self.learn(all.values()) {
            let tokens = state.metadata_or_insert_with(Tokens::new);
            for token in self.dictionary.tokens() {
                tokens.add_token(&token.as_bytes().to_vec());
            }
        }
        let parts = input.parts();
        let list: Vec<_> = all.into_values().flat_map(|one| values(one, &parts)).collect();
        let values = CmpValuesMetadata { list: list.clone() };
        state.current_testcase_mut()?.add_metadata(values);
        state.metadata_or_insert_with(CmpValuesMetadata::new).list = list;
        Ok(())
    }
}

/// A comparison in each width that holds both operands with the same kind of extension. Only if the
/// input contains an operand that a mutator would replace, in either byte order.
fn values(operands: Operands, parts: &[Cow<'_, [u8]>]) -> impl Iterator<Item = CmpValues> {
    let widths = operands.replacements().map(|change| change.find.as_bytes().len());
    // Widths are powers of two.
    let widths = widths.fold(0, |all, width| all | width);
    let ((first, second), constant) = (operands.unsigned(), operands.is_const());
    let contains = move |bytes: &[u8]| places(parts, bytes).next().is_some();
    let holds = move |operand: u64, width: usize| {
        contains(&operand.to_le_bytes()[..width]) || contains(&operand.to_be_bytes()[8 - width..])
    };
    let may_help = move |width: &usize| {
        widths & width != 0 && (holds(second, *width) || !constant && holds(first, *width))
    };
    [1, 2, 4, 8].into_iter().filter(may_help).map(move |width| match width {
        1 => CmpValues::U8((first as u8, second as u8, constant)),
        2 => CmpValues::U16((first as u16, second as u16, constant)),
        4 => CmpValues::U32((first as u32, second as u32, constant)),
        _ => CmpValues::U64((first, second, constant)),
    })
}

crate::no_restart!(ComparisonStage<I>, "kcov-comparisons");
