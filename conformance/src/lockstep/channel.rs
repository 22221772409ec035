//! The sockets between the driving process and its workers.

use crate::raw::Device;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::unistd::{read, write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::os::fd::{BorrowedFd, IntoRawFd as _, RawFd};

/// The size limit of a message.
const MOST_BYTES: usize = 4096;

/// The sockets by number, because they are inherited across fork and exec.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Channels {
    /// The driver's and the worker's end of each slot.
    pairs: Vec<(RawFd, RawFd)>,
    /// The two ends for passing descriptors.
    pass: (RawFd, RawFd),
}

/// One end of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel(RawFd);

impl Channels {
    /// Creates them. They are never closed.
    pub fn new(slots: usize) -> nix::Result<Channels> {
        let pair = || {
            let (kind, flags) = (SockType::SeqPacket, SockFlag::empty());
            let (left, right) = socketpair(AddressFamily::Unix, kind, None, flags)?;
            Ok((left.into_raw_fd(), right.into_raw_fd()))
        };
        let pairs = (0..slots).map(|_| pair()).collect::<nix::Result<Vec<_>>>()?;
        Ok(Channels { pairs, pass: pair()? })
    }

    /// The driver's end.
    pub fn of_driver(&self, slot: usize) -> Channel {
        Channel(self.pairs[slot].0)
    }

    /// The worker's end.
    pub fn of_worker(&self, slot: usize) -> Channel {
        Channel(self.pairs[slot].1)
    }

    /// Sends a descriptor to the next receiver.
    pub fn pass_descriptor(&self, device: &Device) {
        device.send(self.pass.0);
    }

    /// Receives the descriptor.
    pub fn take_descriptor(&self) -> Device {
        Device::receive(self.pass.1)
    }
}

impl Channel {
    fn fd(&self) -> BorrowedFd<'static> {
        // SAFETY: the descriptor stays open, because nobody closes a channel.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }

    /// Sets the time limit for receiving, in seconds.
    pub fn set_limit(self, seconds: i64) -> nix::Result<()> {
        setsockopt(&self.fd(), sockopt::ReceiveTimeout, &TimeVal::seconds(seconds))
    }

    /// Sends a message.
    pub fn send(self, message: &impl Serialize) {
        let text = serde_json::to_vec(message).expect("it has a text form");
        assert!(text.len() <= MOST_BYTES, "a message of {} bytes", text.len());
        write(self.fd(), &text).expect("a message is sent");
    }

    /// Waits for a message.
    pub fn receive<M: DeserializeOwned>(self) -> M {
        self.try_receive().expect("a message comes")
    }

    /// Waits for a message, up to the limit.
    pub fn try_receive<M: DeserializeOwned>(self) -> nix::Result<M> {
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
