//! Tries a deadly input again, and makes it smaller.

use super::guests::{Ended, Guests, Work};
use super::report::Report;
use crate::error::{Error, Phase, Result};
use kcov_vm_guest::fuzz::Line;
use std::time::{Duration, Instant};

/// The largest number of guests that make one input smaller.
const BOOTS: usize = 24;
/// The time after which no further guest starts. One that hangs uses 15 seconds of processor time.
const TIME: Duration = Duration::from_secs(120);
/// The number of guests that may die before the host opens their memory. Such a death shows nothing.
/// It is rare even on a busy host.
const LOST: usize = 5;
/// The bytes of all inputs for one guest.
const ROOM: usize = 4 << 20;

/// An input, and what the fuzzer says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    pub bytes: Vec<u8>,
    /// The input for people, if the fuzzer knows more than bytes.
    pub text: Option<String>,
    /// Smaller versions of it, the smallest first.
    smaller: Vec<Vec<u8>>,
}

/// A death in a replay.
#[derive(Clone, Debug)]
struct Death {
    /// The input that ran. What the fuzzer says belongs to the only input of a replay.
    input: Input,
    /// Whether the guest died in the same way as before.
    is_same: bool,
    title: String,
}

/// Runs an input in a fresh guest. Returns it if the guest dies of it in the same way; the inner
/// error says what it does instead.
pub fn again(
    guests: &Guests<'_>,
    number: usize,
    input: &[u8],
    group: &str,
) -> Result<std::result::Result<Input, String>> {
    let death = replay(guests, number, &[input.to_vec()], group)?;
    Ok(match death {
        _ if guests.is_stopped() => Err("was not tried again, because the run ended".into()),
        Some(death) if !death.is_same => Err(format!("dies of another cause: {}", death.title)),
        death => death
            .and_then(|death| death.of(input))
            .ok_or_else(|| "does not die again of this input alone".into()),
    })
}

/// Makes an input smaller as long as it stays deadly in the same way, at most until `end`. A fresh
/// guest has died of the result alone.
pub fn minimize(
    guests: &Guests<'_>,
    number: usize,
    input: Input,
    group: &str,
    end: Option<Instant>,
) -> Result<Input> {
    let latest = Instant::now() + TIME;
    let (end, mut boots) = (end.map_or(latest, |end| end.min(latest)), 0);
    shrink(input, |candidates| {
        boots += 1;
        let is_over = boots > BOOTS || guests.is_stopped() || Instant::now() >= end;
        if is_over { Ok(None) } else { replay(guests, number, candidates, group) }
    })
}

/// Runs inputs in one guest until it dies.
fn replay(
    guests: &Guests<'_>,
    number: usize,
    inputs: &[Vec<u8>],
    group: &str,
) -> Result<Option<Death>> {
    for _ in 0..LOST {
        let (mut text, mut smaller) = (None, Vec::new());
        let ended = guests.run(number, Work::Replay(inputs), &mut |line| match line {
            Line::Text(said) => text = Some(said),
            Line::Smaller(input) => smaller.push(input),
            _ => {}
        })?;
        let Ended::Died(death) = ended else { return Ok(None) };
        let report = Report::new(
            &death.console,
            guests.target.kind.system(),
            &death.why,
            &guests.ready.vmlinux(),
        );
        let is_same = report.group == group;
        if !death.is_lost {
            let input = |bytes| Input { bytes, text, smaller };
            let title = report.title;
            return Ok(death.ran.map(|ran| Death { input: input(ran.input), is_same, title }));
        }
    }
    let why = format!(
        "{LOST} guests died before the host could open their memory; run fewer at once (--guests)"
    );
    Err(Error::unavailable(Phase::Program, why))
}

impl Death {
    /// Returns this input if the guest died of it in the same way.
    fn of(self, input: &[u8]) -> Option<Input> {
        (self.is_same && self.input.bytes == input).then_some(self.input)
    }
}

/// Tries ever smaller inputs. `run` returns the death of a guest that runs them in order.
fn shrink<E>(
    mut best: Input,
    mut run: impl FnMut(&[Vec<u8>]) -> std::result::Result<Option<Death>, E>,
) -> std::result::Result<Input, E> {
    loop {
        let mut candidates = std::mem::take(&mut best.smaller);
        if candidates.is_empty() {
            candidates = parts(&best.bytes);
        }
        let mut found = None;
        while let Some(death) = if candidates.is_empty() { None } else { run(&candidates)? } {
            let is_deadly = |candidate: &Vec<u8>| *candidate == death.input.bytes;
            let Some(at) = candidates.iter().position(is_deadly) else { break };
            let candidate = candidates[at].clone();
            candidates.drain(..=at);
            // An earlier candidate may have prepared the death.
            found = match death.is_same {
                true => run(std::slice::from_ref(&candidate))?.and_then(|d| d.of(&candidate)),
                false => None,
            };
            if found.is_some() {
                break;
            }
        }
        match found {
            Some(smaller) => best = smaller,
            None => return Ok(best),
        }
    }
}

/// The input without a part of it, for ever smaller parts.
fn parts(input: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut room) = (Vec::new(), ROOM);
    let mut part = input.len().div_ceil(2);
    while part > 0 {
        for at in (0..input.len()).step_by(part) {
            let end = (at + part).min(input.len());
            let without = [&input[..at], &input[end..]].concat();
            match room.checked_sub(without.len()) {
                Some(left) => room = left,
                None => return all,
            }
            all.push(without);
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn input(bytes: &[u8]) -> Input {
        Input { bytes: bytes.to_vec(), ..Input::default() }
    }

    fn death(bytes: &[u8], is_same: bool) -> Death {
        Death { input: input(bytes), is_same, title: String::new() }
    }

    /// A guest that dies of the first input with a 7 and a `!` at the end. It dies in another way of
    /// one with two `?`.
    fn guest(inputs: &[Vec<u8>]) -> std::result::Result<Option<Death>, Infallible> {
        let is_same = |bytes: &[u8]| bytes.contains(&7) && bytes.ends_with(b"!");
        let is_other = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'?').count() == 2;
        let deadly = inputs.iter().find(|bytes| is_same(bytes) || is_other(bytes));
        Ok(deadly.map(|bytes| death(bytes, !is_other(bytes))))
    }

    #[test]
    fn what_is_not_needed_goes() {
        let mut guests = 0;
        let shrunk = shrink(input(b"a long input \x07 that ends here!"), |candidates| {
            guests += 1;
            guest(candidates)
        });
        assert_eq!(shrunk.unwrap().bytes, b"\x07!");
        assert!(guests <= BOOTS, "{guests}");
        assert_eq!(shrink(input(b"abc"), guest).unwrap().bytes, b"abc");
        assert_eq!(shrink(input(b"abc"), |_| Err("no guest")), Err("no guest"));
    }

    #[test]
    fn other_deaths_are_passed_over() {
        let shrunk = shrink(input(b"??abcdefgh?\x07!"), guest);
        assert_eq!(shrunk.unwrap().bytes, b"\x07!");
    }

    #[test]
    fn a_death_that_others_prepared_does_not_count() {
        // The guest always dies of the third input, whatever it is.
        let third =
            |inputs: &[Vec<u8>]| Ok::<_, Infallible>(inputs.get(2).map(|bytes| death(bytes, true)));
        assert_eq!(shrink(input(b"abcd"), third).unwrap().bytes, b"abcd");
    }

    #[test]
    fn the_fuzzers_own_versions_come_first() {
        let mut told = input(b"abcd");
        told.smaller = vec![b"x".to_vec(), b"yz\x07!".to_vec()];
        let mut first = Vec::new();
        let shrunk = shrink(told, |candidates| {
            if first.is_empty() {
                first = candidates.to_vec();
            }
            guest(candidates)
        });
        assert_eq!(first, [b"x".to_vec(), b"yz\x07!".to_vec()]);
        assert_eq!(shrunk.unwrap().bytes, b"\x07!");
    }

    #[test]
    fn the_parts_of_a_large_input_have_a_limit() {
        let total: usize = parts(&vec![0; 100_000]).iter().map(Vec::len).sum();
        assert!((ROOM / 2..=ROOM).contains(&total), "{total}");
        assert_eq!(parts(b"ab"), [b"b", b"a"]);
    }
}
