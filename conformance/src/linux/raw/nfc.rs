//! An NFC controller played by this program, and the requests of a card reader.
//!
//! The kernel sends packets and processes answers in remote sections. Their handle is that of the
//! thread that started the exchange.

use super::Netlink;
use crate::errno::{Errno, Result};
use nix::sys::socket::{MsgFlags, send};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

const IOCTL_GET_NCIDEV_IDX: libc::Ioctl = libc::_IO(0, 0);
const NFC_CMD_DEV_UP: u8 = 2;
const NFC_CMD_DEV_DOWN: u8 = 3;
const NFC_CMD_START_POLL: u8 = 6;
const NFC_ATTR_DEVICE_INDEX: u16 = 1;
const NFC_ATTR_PROTOCOLS: u16 = 3;
const NFC_PROTO_ISO14443: u32 = 4;

/// The first byte of a packet: its type, combined with its group.
const COMMAND: u8 = 1 << 5;
const RESPONSE: u8 = 2 << 5;
/// The answer to a reset: version 1.0, with the configuration kept.
const RESET: &[u8] = &[0, 0x10, 0];
/// The answer to initialization: no features, one frame interface to cards, and limits.
const READY: &[u8] = &[0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 255, 0, 1, 0, 0, 0, 0, 0];
/// The notification of an active card: identifier, frame interface, protocol, passive technology,
/// 255-byte packets in any number, the card's answer, number and kind, and speeds.
const FOUND: &[u8] =
    &[0x61, 5, 20, 1, 1, 4, 0, 255, 255, 9, 4, 3, 4, 1, 2, 3, 4, 1, 0x20, 0, 0, 0, 0];

/// The command to release a card, and the notification that follows it: idle, as requested.
const LET_GO: [u8; 2] = [COMMAND | 1, 6];
const GONE: &[u8] = &[0x61, 6, 2, 0, 0];

/// A controller, which disappears when dropped.
#[derive(Debug)]
pub struct Nfc {
    file: File,
    /// Stays open as long as the controller: closing it makes the kernel stop polling for cards.
    family: Netlink,
}

impl Nfc {
    /// Creates a controller, which is off.
    pub fn new() -> Result<Nfc> {
        let file = File::options().read(true).write(true).open("/dev/virtual_nci")?;
        Ok(Nfc { file, family: Netlink::open("nfc")? })
    }

    fn number(&self) -> u32 {
        let mut number = 0_u32;
        // SAFETY: the request only writes the number.
        let returned =
            unsafe { libc::ioctl(self.file.as_raw_fd(), IOCTL_GET_NCIDEV_IDX, &raw mut number) };
        Errno::check(returned).expect("the controller has a number");
        number
    }

    /// Answers the next packet that the kernel sends.
    pub fn answer(&self) {
        let mut packet = [0; 512];
        let length = (&self.file).read(&mut packet).expect("a packet");
        assert!(length >= 3, "{length} bytes");
        let answer = match packet {
            [COMMAND, 0, ..] => response(&packet, RESET),
            [COMMAND, 1, ..] => response(&packet, READY),
            [first, ..] if first & 0xe0 == COMMAND => response(&packet, &[0]),
            // Data for the card, which echoes it.
            _ => packet[..length].to_vec(),
        };
        (&self.file).write_all(&answer).expect("the answer is taken");
        if packet[..2] == LET_GO {
            (&self.file).write_all(GONE).expect("and what follows from it");
        }
    }

    /// Turns the controller on. Someone must call [`answer`](Self::answer) meanwhile.
    pub fn up(&self) -> Result<()> {
        self.request(NFC_CMD_DEV_UP, &[]).map(drop)
    }

    /// Turns it off. Someone must call [`answer`](Self::answer) meanwhile.
    pub fn down(&self) -> Result<()> {
        self.request(NFC_CMD_DEV_DOWN, &[]).map(drop)
    }

    /// Starts polling for cards.
    pub fn poll(&self) -> Result<()> {
        let protocols = (1_u32 << NFC_PROTO_ISO14443).to_ne_bytes();
        self.request(NFC_CMD_START_POLL, &[(NFC_ATTR_PROTOCOLS, &protocols)]).map(drop)
    }

    /// Reports a card.
    pub fn find(&self) {
        (&self.file).write_all(FOUND).expect("the card is taken");
    }

    /// Connects a socket to the card, which the kernel may not know yet.
    pub fn connect(&self) -> Result<Card> {
        /// `struct sockaddr_nfc`.
        #[repr(C)]
        struct Address {
            family: u32,
            device: u32,
            target: u32,
            protocol: u32,
        }
        // SAFETY: the call takes no pointer.
        let fd = unsafe { libc::socket(libc::AF_NFC, libc::SOCK_SEQPACKET, 0) };
        // SAFETY: the kernel has just installed this file descriptor, so nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(Errno::check(fd)?) };
        let family = u32::try_from(libc::AF_NFC).expect("a family");
        let protocol = NFC_PROTO_ISO14443;
        let address = Address { family, device: self.number(), target: 0, protocol };
        let (place, size) = ((&raw const address).cast(), size_of::<Address>());
        let size = libc::socklen_t::try_from(size).expect("a size");
        // SAFETY: the address has the size that is passed.
        Errno::check(unsafe { libc::connect(socket.as_raw_fd(), place, size) })?;
        Ok(Card(socket))
    }

    fn request(&self, command: u8, more: &[(u16, &[u8])]) -> Result<Vec<u8>> {
        let number = self.number().to_ne_bytes();
        let mut attributes: Vec<(u16, &[u8])> = vec![(NFC_ATTR_DEVICE_INDEX, &number)];
        attributes.extend_from_slice(more);
        self.family.request(command, &attributes)
    }
}

/// A connection to a card.
#[derive(Debug)]
pub struct Card(OwnedFd);

impl Card {
    /// Sends data to the card.
    pub fn send(&self) {
        send(self.0.as_raw_fd(), b"kcov", MsgFlags::empty()).expect("sent");
    }

    /// Waits for the answer.
    pub fn receive(&self) {
        let received = nix::sys::socket::recv(self.0.as_raw_fd(), &mut [0; 64], MsgFlags::empty());
        assert!(received.expect("an answer") > 0);
    }
}

fn response(command: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a payload");
    [&[RESPONSE | command[0] & 0x0f, command[1], length], payload].concat()
}
