//! One altered kernel under the suite.

use super::record::Outcome;
use crate::error::{Error, Phase, Result};
use crate::guest::{Listener, Stream};
use crate::session::{Ready, Session, Task};
use crate::verdict::{Check, Reader};

/// The name of what goes red before any check: a feature is there and not declared, or the other
/// way around.
pub const DECLARATION: &str = "(declaration)";

#[derive(Default)]
struct Ear(Reader);

impl Listener for Ear {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Out {
            self.0.feed(bytes);
        }
    }
}

/// Runs the suite to its first red check. Only a failure of this side is an error.
pub fn run(session: &Session, ready: &Ready<'_>, task: Task) -> Result<Outcome> {
    let mut ear = Ear::default();
    let finished = session.run(ready, task, &mut ear);
    let red = |checks: &[Check]| {
        checks.iter().find(|check| check.outcome.is_red()).map(|check| check.id.clone())
    };
    // Whatever became of the kernel after it.
    if let Some(by) = red(ear.0.progress().0) {
        return Ok(Outcome::Killed { by });
    }
    let finished = match finished {
        Ok(finished) => finished,
        Err(Error::Unavailable(failure)) => {
            return match failure.phase {
                Phase::Boot | Phase::Program | Phase::End => {
                    Ok(Outcome::Crashed { why: failure.message })
                }
                _ => Err(failure.into()),
            };
        }
        Err(error) => return Err(error),
    };
    match ear.0.finish(finished.ended()?) {
        Ok(_) => Ok(Outcome::Survived),
        Err(why) if why.contains("is not what the target declares") => {
            Ok(Outcome::Killed { by: DECLARATION.into() })
        }
        Err(why) => Ok(Outcome::Crashed { why }),
    }
}
