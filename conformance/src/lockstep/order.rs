//! What the driving process and its threads tell each other.

use super::channel::Channels;
use crate::model::{D, M, Operation};
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;
use std::path::PathBuf;

/// What a thread is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// To do that; `tries` times, if it traces and something is recorded, until nothing is.
    Do { operation: Operation, tries: u32 },
    /// To take the descriptor that the socket has.
    Receive { new: D },
    /// To start a thread on that channel.
    StartThread { slot: usize },
    /// To end, the thread only.
    EndThread,
    /// To wait for the end of the thread on that channel.
    Join { slot: usize },
    /// To fork, with the child on that channel.
    Fork { slot: usize },
    /// To make the call that is traced.
    Call,
    /// To have a kernel thread work on its behalf.
    Work,
    /// To do nothing; or to tell the digest of what the mapping shows.
    Look { map: Option<M> },
    /// To wait for the end of a child.
    Wait { pid: i32 },
}

/// What it says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Done,
    Refused(i32),
    /// The count before and after.
    Counted(u64, u64),
    Word(u64),
    /// A child.
    Process(i32),
    /// It could not even be tried.
    Broken(String),
}

/// What a process is started with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Equipment {
    pub channels: Channels,
    pub device: PathBuf,
    /// Makes handles differ from run to run.
    pub run: u32,
    /// The channel of the first thread.
    pub slot: usize,
    /// The descriptors that are inherited.
    pub descriptors: Vec<(D, RawFd)>,
}
