//! Runs the suite on one alteration, in as many guests as necessary.

use kcov_vm::error::{Error, Phase, Result};
use kcov_vm::guest::{Finished, Limits, Listener, Stream};
use kcov_vm::session::Task;
use kcov_vm::verdict::{Check, Reader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of a failure before any check: the kernel does not have the declared features.
pub const DECLARATION: &str = "(declaration)";

/// Boots an attempt's kernel and runs a task.
pub type Boot<'a> = dyn Fn(&Attempt<'_>, Limits, Task, &mut dyn Listener) -> Result<Finished> + 'a;

/// An alteration under test.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The kernel.
    pub kernel: &'a Path,
    /// The suite.
    pub suite: &'a Task,
    /// The log directory.
    pub logs: PathBuf,
    /// The time limit of a check, if not the suite's own.
    pub limit: Option<Duration>,
    /// The checks to run first. For `walk` only.
    pub first: &'a [String],
}

/// The results.
#[derive(Debug, Default)]
pub struct Seen {
    /// The red checks.
    pub red: Vec<String>,
    /// Those of them that took as long as the limit of a check.
    pub late: Vec<String>,
    /// The first reason why a guest ended early or badly.
    pub ended: Option<String>,
    /// The checks during which guests ended.
    pub during: Vec<String>,
    /// The number of checks without a result.
    pub unseen: usize,
}

/// The results of one guest.
pub struct Heard {
    pub checks: Vec<Check>,
    /// Whether the suite began.
    began: bool,
    pub ended: Option<String>,
    /// The most processor time that the guest used without output, if it ended properly.
    pub silence: Duration,
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

/// Runs these checks, or all, in one guest. Only a failure of the infrastructure is an error.
pub fn once(
    boot: &Boot<'_>,
    attempt: &Attempt<'_>,
    limits: Limits,
    arguments: &[String],
) -> Result<Heard> {
    let mut ear = Ear::default();
    let mut task = attempt.suite.clone();
    let limit = attempt.limit.map(|limit| format!("--time-limit={}", limit.as_secs()));
    task.arguments.extend(limit.map(Into::into));
    task.arguments.extend(arguments.iter().map(Into::into));
    let finished = boot(attempt, limits, task, &mut ear);
    let (checks, plan) = ear.0.progress();
    let (checks, began) = (checks.to_vec(), plan.is_some());
    let mut silence = Duration::ZERO;
    let ended = match finished {
        Ok(finished) => {
            silence = finished.silence;
            ear.0.finish(finished.ended()?).err()
        }
        Err(Error::Unavailable(failure)) => match failure.phase {
            Phase::Boot | Phase::Program | Phase::End => Some(failure.message),
            _ => return Err(failure.into()),
        },
        Err(error) => return Err(error),
    };
    Ok(Heard { checks, began, ended, silence })
}

/// Walks through the suite. The next guest leaves out a check that killed its guest. No guest starts
/// after `end`, but for the first.
pub fn walk(
    boot: &Boot<'_>,
    order: &[String],
    attempt: &Attempt<'_>,
    limits: Limits,
    guests: usize,
    end: Instant,
) -> Result<Seen> {
    let mut seen = Seen { unseen: order.len(), ..Seen::default() };
    let later = order.iter().filter(|id| !attempt.first.contains(id));
    let mut left: Vec<String> = attempt.first.iter().chain(later).cloned().collect();
    let mut unproved = false;
    for _ in 0..guests {
        let word = unproved.then(|| "--unproved".to_string());
        let first: Vec<&str> =
            attempt.first.iter().filter(|id| left.contains(id)).map(String::as_str).collect();
        let first = (!first.is_empty()).then(|| format!("--first={}", first.join(",")));
        let arguments: Vec<String> =
            word.into_iter().chain(first).chain(left.iter().cloned()).collect();
        let heard = once(boot, attempt, limits, &arguments)?;
        seen.unseen -= heard.checks.len();
        for check in heard.checks.iter().filter(|check| check.outcome.is_red()) {
            seen.red.push(check.id.clone());
            let is_late = attempt.limit.is_some_and(|limit| check.time >= limit);
            seen.late.extend(is_late.then(|| check.id.clone()));
        }
        let Some(why) = heard.ended else { break };
        if !heard.began {
            seen.ended.get_or_insert(why);
            break;
        }
        if heard.checks.is_empty() && !unproved {
            // The proof of the declaration may have failed. The checks can run without it.
            unproved = true;
            if why.contains("is not what the target declares") || why.contains("the probe for ") {
                seen.red.push(DECLARATION.into());
                continue;
            }
        } else {
            let checks = left.drain(..left.len().min(heard.checks.len() + 1));
            seen.during.extend(checks.skip(heard.checks.len()));
        }
        seen.ended.get_or_insert(why);
        if left.is_empty() || Instant::now() > end {
            break;
        }
    }
    Ok(seen)
}
