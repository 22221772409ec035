//! The sockets between the driving process and its workers, and the messages.

use crate::errno::Errno;
use kcov_model::{D, M, Operation, Outcome, Work};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::unistd::{read, write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::os::fd::{BorrowedFd, IntoRawFd as _, RawFd};
use std::path::PathBuf;

const MOST_BYTES: usize = 4096;

/// The sockets by number, because they are inherited across fork and exec.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Channels {
    /// The driver's and the worker's end of each slot.
    pairs: Vec<(RawFd, RawFd)>,
    /// The two ends for passing descriptors.
    pub pass: (RawFd, RawFd),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Channel(RawFd);

impl Channels {
    /// Creates them, with a time limit for the driver's receiving in seconds. They are never closed.
    pub fn new(slots: usize, limit: i64) -> nix::Result<Channels> {
        let pair = || {
            let (kind, flags) = (SockType::SeqPacket, SockFlag::empty());
            let (left, right) = socketpair(AddressFamily::Unix, kind, None, flags)?;
            Ok((left.into_raw_fd(), right.into_raw_fd()))
        };
        let pairs = (0..slots).map(|_| pair()).collect::<nix::Result<Vec<_>>>()?;
        for (driver, _) in &pairs {
            let limit = TimeVal::seconds(limit);
            setsockopt(&Channel(*driver).fd(), sockopt::ReceiveTimeout, &limit)?;
        }
        Ok(Channels { pairs, pass: pair()? })
    }

    pub fn of_driver(&self, slot: usize) -> Channel {
        Channel(self.pairs[slot].0)
    }

    pub fn of_worker(&self, slot: usize) -> Channel {
        Channel(self.pairs[slot].1)
    }
}

impl Channel {
    fn fd(&self) -> BorrowedFd<'static> {
        // SAFETY: the descriptor stays open, because nobody closes a channel.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }

    pub fn send(self, message: &impl Serialize) {
        let text = serde_json::to_vec(message).expect("it has a text form");
        assert!(text.len() <= MOST_BYTES, "a message of {} bytes", text.len());
        write(self.fd(), &text).expect("a message is sent");
    }

    /// Waits for a message, up to the limit.
    pub fn receive<M: DeserializeOwned>(self) -> nix::Result<M> {
        let mut bytes = [0; MOST_BYTES];
        let length = loop {
            match read(self.fd(), &mut bytes) {
                Err(nix::errno::Errno::EINTR) => {}
                other => break other?,
            }
        };
        Ok(serde_json::from_slice(&bytes[..length]).expect("a message that is known"))
    }
}

/// An order to a thread.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    Do(Operation, Patience),
    /// Receive a descriptor from the socket.
    Receive(D),
    /// Start a thread on the channel of this slot.
    StartThread(usize),
    EndThread,
    /// Join the thread on this channel.
    Join(usize),
    /// Fork, with the child on this channel.
    Fork(usize),
    Call,
    Work(Work),
    /// Return a hash of the mapping, or do nothing.
    Look(Option<M>),
    /// Wait for a child.
    Wait(i32),
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

impl From<Errno> for Outcome {
    fn from(errno: Errno) -> Outcome {
        let known = errno.name().and_then(|name| serde_json::from_value(name.into()).ok());
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
