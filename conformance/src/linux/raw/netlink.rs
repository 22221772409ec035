//! Generic netlink: requests to a subsystem, and its replies.

use crate::errno::{Errno, Result};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use std::os::fd::{AsRawFd as _, OwnedFd};

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `struct nlmsghdr`, which `struct genlmsghdr` follows.
const HEADER: usize = 16;
const BOTH: usize = HEADER + 4;

/// A subsystem's family.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    family: u16,
}

impl Netlink {
    /// Looks up the family with this name.
    pub fn open(name: &str) -> Result<Netlink> {
        let (flags, protocol) = (SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkGeneric);
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        let control = Netlink { socket, family: GENL_ID_CTRL };
        let name = [name.as_bytes(), &[0]].concat();
        let reply = control.request(CTRL_CMD_GETFAMILY, &[(CTRL_ATTR_FAMILY_NAME, &name)])?;
        let family = attributes(&reply).into_iter().find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        let (_, number) = family.expect("the reply has the family's number");
        Ok(Netlink { family: u16::from_ne_bytes([number[0], number[1]]), ..control })
    }

    /// Sends a request and waits until the kernel has carried it out. Returns the attributes of the
    /// reply, if any.
    pub fn request(&self, command: u8, attributes: &[(u16, &[u8])]) -> Result<Vec<u8>> {
        let mut message = vec![0; HEADER];
        message.extend([command, 1, 0, 0]);
        for (kind, value) in attributes {
            let length = u16::try_from(4 + value.len()).expect("an attribute");
            message.extend(length.to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend_from_slice(value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        let length = u32::try_from(message.len()).expect("a message");
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&self.family.to_ne_bytes());
        message[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        send(self.socket.as_raw_fd(), &message, MsgFlags::empty())?;

        let mut reply = Vec::new();
        loop {
            let mut buffer = vec![0; 1 << 16];
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let mut rest = &buffer[..length];
            while rest.len() >= HEADER {
                let length = usize::try_from(number(rest)).expect("a length");
                let (this, next) = rest.split_at(length);
                if u16::from_ne_bytes([this[4], this[5]]) == NLMSG_ERROR {
                    return match number(&this[HEADER..]) {
                        0 => Ok(reply),
                        negative => Err(Errno((negative as i32).wrapping_neg())),
                    };
                }
                reply = this[BOTH..].to_vec();
                rest = next.get(length.next_multiple_of(4) - length..).unwrap_or_default();
            }
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Splits attributes into kinds and values.
fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut all = Vec::new();
    while bytes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        all.push((u16::from_ne_bytes([bytes[2], bytes[3]]), &bytes[4..length]));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}
