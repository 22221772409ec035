#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

/// Leaves the stage out for an input during which the fuzzer ended.
macro_rules! no_restart {
    ($stage:ident $(<$input:ident>)?, $name:literal) => {
        impl<$($input,)? S> libafl::stages::Restartable<S> for $stage$(<$input>)?
        where
            S: libafl::HasNamedMetadata + libafl::corpus::HasCurrentCorpusId,
        {
            fn should_restart(&mut self, state: &mut S) -> Result<bool, Error> {
                libafl::stages::RetryCountRestartHelper::no_retry(state, $name)
            }

            fn clear_progress(&mut self, state: &mut S) -> Result<(), Error> {
                libafl::stages::RetryCountRestartHelper::clear_progress(state, $name)
            }
        }
    };
}
pub(crate) use no_restart;

mod background;
mod compare;
mod executor;
mod follow;
mod fork;
mod forked;
mod fuzz;
mod in_process;
mod novelty;
mod observer;
mod program;
mod report;
mod server;
mod sys;

pub use background::Sources;
pub use compare::{ComparisonStage, Search};
pub use executor::{CompareExecutor, Observed, Run};
pub use follow::FollowStage;
pub use fork::{Ended, Fork, Spawn};
pub use forked::{Children, Forked};
pub use fuzz::{Fuzz, Mutation, Summary};
pub use in_process::{Here, InProcess};
pub use novelty::{NewPcs, NoveltyFeedback, NoveltyMetadata};
pub use observer::{CoverageObserver, SignalObserver};
pub use program::{Calls, Change, Generate, MinimizeStage, Param, Program, Resource};

/// An error as LibAFL's.
fn failed(error: impl std::fmt::Display) -> libafl::Error {
    libafl::Error::unknown(error.to_string())
}
