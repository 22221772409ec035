//! Tries a deadly input again, and makes it smaller.

use super::guests::{Ended, Guests, Work};
use super::report::Report;
use crate::error::Result;

/// The largest number of guests for one input.
const BOOTS: usize = 24;

/// Whether a fresh guest dies of this input in the same way.
pub fn dies(guests: &Guests<'_>, number: usize, input: &[u8], group: &str) -> Result<bool> {
    let inputs = [input.to_vec()];
    Ok(deadly(guests, number, &inputs, group)?.is_some())
}

/// Removes parts of an input as long as it stays deadly in the same way. The result was tried alone.
pub fn minimize(guests: &Guests<'_>, number: usize, input: &[u8], group: &str) -> Result<Vec<u8>> {
    let mut boots = 0;
    let smallest = shrink(input, |candidates| {
        boots += 1;
        if boots > BOOTS { Ok(None) } else { deadly(guests, number, candidates, group) }
    })?;
    // In a guest with several inputs, an earlier one may have prepared the death.
    let is_smaller = smallest.len() < input.len();
    let alone = is_smaller && dies(guests, number, &smallest, group)?;
    Ok(if alone { smallest } else { input.to_vec() })
}

/// Runs inputs in one guest. Returns the one that killed it in the same way.
fn deadly(
    guests: &Guests<'_>,
    number: usize,
    inputs: &[Vec<u8>],
    group: &str,
) -> Result<Option<Vec<u8>>> {
    let Ended::Died(death) = guests.run(number, Work::Replay(inputs), &mut |_| {})? else {
        return Ok(None);
    };
    let report = Report::new(&death.console, guests.target().kind.system(), &death.why);
    Ok(death.input.filter(|input| report.group == group && inputs.contains(input)))
}

/// Removes ever smaller parts. `first` returns the first candidate that is still deadly.
fn shrink<E>(
    input: &[u8],
    mut first: impl FnMut(&[Vec<u8>]) -> std::result::Result<Option<Vec<u8>>, E>,
) -> std::result::Result<Vec<u8>, E> {
    let mut best = input.to_vec();
    let mut part = best.len().div_ceil(2);
    while part > 0 && !best.is_empty() {
        let without = |at: usize| {
            let end = (at + part).min(best.len());
            [&best[..at], &best[end..]].concat()
        };
        let candidates: Vec<_> = (0..best.len()).step_by(part).map(without).collect();
        match first(&candidates)? {
            Some(smaller) => {
                best = smaller;
                part = part.min(best.len());
            }
            None if part == 1 => break,
            None => part = part.div_ceil(2),
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::shrink;
    use std::convert::Infallible;

    #[test]
    fn what_is_not_needed_goes() {
        let is_deadly = |input: &[u8]| input.contains(&7) && input.ends_with(b"!");
        let mut guests = 0;
        let shrunk = shrink(b"a long input \x07 that ends here!", |candidates| {
            guests += 1;
            Ok::<_, Infallible>(candidates.iter().find(|it| is_deadly(it)).cloned())
        });
        assert_eq!(shrunk, Ok(b"\x07!".to_vec()));
        assert!(guests < 48, "{guests}");
        let kept = shrink(b"abc", |_| Ok::<_, Infallible>(None));
        assert_eq!(kept, Ok(b"abc".to_vec()));
        let error = shrink(b"abc", |_| Err("no guest"));
        assert_eq!(error, Err("no guest"));
    }
}
