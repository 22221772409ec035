//! The messages between the driving process and its threads.

use super::channel::Channels;
use crate::errno::Errno;
use kcov_model::Outcome;
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;
use std::path::PathBuf;

/// An order to a thread.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Execute the operation, which is in its debug form.
    Do { operation: String, patience: Patience },
    /// Receive a descriptor from the socket.
    Receive { new: u32 },
    /// Start a thread on this channel.
    StartThread { slot: usize },
    /// End this thread.
    EndThread,
    /// Join the thread on this channel.
    Join { slot: usize },
    /// Fork, with the child on this channel.
    Fork { slot: usize },
    /// Make the traced call.
    Call,
    /// Let the kernel work for this thread, in softirqs or not.
    Work { soft: bool },
    /// Return a hash of the mapping, or do nothing.
    Look { map: Option<u32> },
    /// Wait for a child.
    Wait { pid: i32 },
}

/// When to accept an observation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Patience {
    /// Repeat the operation until nothing is recorded, at most this many times.
    pub tries: u32,
    /// Wait for sections until the count is at least this.
    pub least: u64,
}

impl Patience {
    /// Accepts the first observation.
    pub const NONE: Patience = Patience { tries: 1, least: 0 };
}

/// An answer is an outcome in its debug form. What cannot be read is said in words.
pub(super) fn outcome(answer: String) -> Outcome {
    answer.parse().unwrap_or(Outcome::Other(answer))
}

impl From<Errno> for Outcome {
    fn from(errno: Errno) -> Outcome {
        let known = errno.name().and_then(|name| name.parse().ok());
        known.map_or_else(|| Outcome::Other(errno.to_string()), Outcome::Refused)
    }
}

/// The state that a new process gets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Equipment {
    pub channels: Channels,
    pub device: PathBuf,
    /// Makes handles differ between runs.
    pub run: u32,
    /// The channel of the first thread.
    pub slot: usize,
    /// The inherited descriptors.
    pub descriptors: Vec<(u32, RawFd)>,
}
