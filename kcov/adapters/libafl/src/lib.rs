//! LibAFL for kernels with kcov, on Linux and NetBSD.
//!
//! [`Fuzz`] is a whole fuzzer around a harness. Its parts are public, for a fuzzer of your own:
//!
//! | Question | |
//! |---|---|
//! | Where do inputs run? | [`InProcess`], [`Forked`], [`Background`] |
//! | Which inputs are new, exactly? | [`SignalObserver`] and [`NoveltyFeedback`], with [`Signal::Pc`] or [`Signal::Edge`] |
//! | Which run code more often? | LibAFL's [`HitcountsMapObserver`](libafl::observers::HitcountsMapObserver) and [`MaxMapFeedback`](libafl::feedbacks::MaxMapFeedback) |
//! | Which values does the kernel expect? | [`ComparisonStage`], and [`FollowStage`] for one after the other |
//! | How are sequences of calls fuzzed? | [`Calls`], [`Generate`], [`Calls::mutations`], [`MinimizeStage`] |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod background;
mod compare;
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
mod shared;
mod sys;
mod unforked;

pub use background::{Background, Sources};
pub use compare::{CompareExecutor, ComparisonStage, Search};
pub use follow::FollowStage;
pub use fork::{Ended, Fork, Spawn};
pub use forked::Forked;
pub use fuzz::{Fuzz, Summary};
pub use in_process::InProcess;
pub use novelty::{NewSignals, NoveltyFeedback, NoveltyMetadata};
pub use observer::{CoverageObserver, Signal, SignalObserver};
pub use program::{
    Calls, Change, ChangeMutations, Generate, MinimizeStage, Param, Program, Resource,
};

/// An error as LibAFL's.
fn failed(error: impl std::fmt::Display) -> libafl::Error {
    libafl::Error::unknown(error.to_string())
}
