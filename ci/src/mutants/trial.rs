//! One alteration under the suite, in as many guests as that takes.

use super::ground::Ground;
use crate::error::{Error, Phase, Result};
use crate::guest::{Limits, Listener, Stream};
use crate::session::Task;
use crate::verdict::{Check, Reader};
use std::path::{Path, PathBuf};

/// The name of what goes red before any check: what the target declares is not what the kernel has.
pub const DECLARATION: &str = "(declaration)";

/// What is tried.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The kernel.
    pub kernel: &'a Path,
    /// The suite.
    pub suite: &'a Task,
    /// Where logs go.
    pub logs: PathBuf,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// The red checks.
    pub red: Vec<String>,
    /// Why a guest ended early, or not well; the first reason.
    pub ended: Option<String>,
    /// How many checks had no result.
    pub unseen: usize,
}

/// What one guest had to say.
pub struct Heard {
    pub checks: Vec<Check>,
    /// Whether the suite began.
    began: bool,
    pub ended: Option<String>,
}

#[derive(Default)]
struct Ear(Reader);

impl Listener for Ear {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Out {
            self.0.feed(bytes);
        }
    }
}

/// Runs these checks in one guest, or all. Only a failure of this side is an error.
pub fn once(
    ground: &Ground<'_>,
    attempt: &Attempt<'_>,
    limits: Limits,
    arguments: &[String],
) -> Result<Heard> {
    let mut ear = Ear::default();
    let mut task = attempt.suite.clone();
    task.arguments.extend(arguments.iter().map(Into::into));
    let finished = ground.run(attempt, limits, task, &mut ear);
    let (checks, plan) = ear.0.progress();
    let (checks, began) = (checks.to_vec(), plan.is_some());
    let ended = match finished {
        Ok(finished) => ear.0.finish(finished.ended()?).err(),
        Err(Error::Unavailable(failure)) => match failure.phase {
            Phase::Boot | Phase::Program | Phase::End => Some(failure.message),
            _ => return Err(failure.into()),
        },
        Err(error) => return Err(error),
    };
    Ok(Heard { checks, began, ended })
}

/// Walks through the suite. The check that a guest has not survived is left out in the next one.
pub fn walk(
    ground: &Ground<'_>,
    attempt: &Attempt<'_>,
    limits: Limits,
    guests: usize,
) -> Result<Seen> {
    let mut seen = Seen { unseen: ground.order.len(), ..Seen::default() };
    let mut left = ground.order.clone();
    let mut unproved = false;
    for _ in 0..guests {
        let word = unproved.then(|| "--unproved".to_string());
        let arguments: Vec<String> = word.into_iter().chain(left.iter().cloned()).collect();
        let heard = once(ground, attempt, limits, &arguments)?;
        seen.unseen -= heard.checks.len();
        let red = heard.checks.iter().filter(|check| check.outcome.is_red());
        seen.red.extend(red.map(|check| check.id.clone()));
        let Some(why) = heard.ended else { break };
        if !heard.began {
            seen.ended.get_or_insert(why);
            break;
        }
        if heard.checks.is_empty() && !unproved {
            // It may have been the proof of the declaration, without which the checks can be run.
            unproved = true;
            if why.contains("is not what the target declares") || why.contains("the probe for ") {
                seen.red.push(DECLARATION.into());
                continue;
            }
        } else {
            left.drain(..left.len().min(heard.checks.len() + 1));
        }
        seen.ended.get_or_insert(why);
        if left.is_empty() {
            break;
        }
    }
    Ok(seen)
}
