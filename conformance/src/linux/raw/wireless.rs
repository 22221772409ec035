//! Simulated radios, and Bluetooth and NFC controllers that this program emulates. Generic netlink
//! sets them up.
//!
//! One [`Radio`] joins a network of its own, the other sends it frames. The kernel receives a frame
//! in a softirq, and a worker processes it later. Both are remote sections with the handle of the
//! sending thread.
//!
//! The kernel sends an [`Nfc`] controller packets and processes answers in remote sections. Their
//! handle is that of the thread that started the exchange. It starts a [`Bluetooth`] controller with
//! commands, and processes each answer in a remote section with the handle of the thread that wrote
//! the answer.

use super::*;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

const NL80211_CMD_SET_WIPHY: u8 = 2;
const NL80211_CMD_SET_INTERFACE: u8 = 6;
const NL80211_CMD_JOIN_IBSS: u8 = 43;
const NL80211_ATTR_IFINDEX: u16 = 3;
const NL80211_ATTR_IFTYPE: u16 = 5;
const NL80211_ATTR_MAC: u16 = 6;
const NL80211_ATTR_WIPHY_FREQ: u16 = 38;
const NL80211_ATTR_SSID: u16 = 52;
const NL80211_ATTR_FREQ_FIXED: u16 = 60;
const NL80211_IFTYPE_ADHOC: u32 = 1;
const NL80211_IFTYPE_MONITOR: u32 = 6;
const MEGAHERTZ: u32 = 2412;
const NETWORK: [u8; 6] = [2, 0x4b, 0x63, 0x6f, 0x76, 1];
const RECEIVER: &str = "wlan0";
const SENDER: &str = "wlan1";

pub struct Radio {
    socket: OwnedFd,
}

impl Radio {
    pub fn present() -> bool {
        let there = |name| fs::exists(format!("/sys/class/net/{name}/phy80211"));
        [RECEIVER, SENDER].into_iter().all(|name| there(name).is_ok_and(|there| there))
    }

    /// Sets both radios up. They belong to the guest and stay that way.
    pub fn new() -> Result<Radio> {
        let family = Netlink::open("nl80211")?;
        let frequency = MEGAHERTZ.to_ne_bytes();
        let network: &[(u16, &[u8])] = &[
            (NL80211_ATTR_SSID, b"kcov"),
            (NL80211_ATTR_MAC, &NETWORK),
            (NL80211_ATTR_FREQ_FIXED, &[]),
        ];
        for (name, kind, command, rest) in [
            (RECEIVER, NL80211_IFTYPE_ADHOC, NL80211_CMD_JOIN_IBSS, network),
            (SENDER, NL80211_IFTYPE_MONITOR, NL80211_CMD_SET_WIPHY, &network[..0]),
        ] {
            let (index, kind) = (if_nametoindex(name)?.to_ne_bytes(), kind.to_ne_bytes());
            // Another check may have left the interface up.
            set_interface(name, false)?;
            let own = (NL80211_ATTR_IFINDEX, &index[..]);
            family.request(NL80211_CMD_SET_INTERFACE, &[own, (NL80211_ATTR_IFTYPE, &kind)])?;
            set_interface(name, true)?;
            let attributes = [own, (NL80211_ATTR_WIPHY_FREQ, &frequency[..])];
            family.request(command, &[&attributes[..], rest].concat())?;
        }
        Ok(Radio { socket: packets(SENDER)? })
    }

    /// Sends a frame that asks the other radio to authenticate a station.
    pub fn send(&self) {
        // An empty radiotap header, so the driver uses its default settings.
        let mut frame = vec![0, 0, 8, 0, 0, 0, 0, 0];
        // An authentication frame to the broadcast address. No station has the source address.
        frame.extend([0xb0, 0, 0, 0]);
        frame.extend([0xff; 6]);
        frame.extend([2, 0, 0, 0, 0, 9]);
        frame.extend(NETWORK);
        // Open authentication, first step.
        frame.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        let sent = nix::unistd::write(&self.socket, &frame);
        assert_eq!(sent, Ok(frame.len()), "the frame is sent");
    }
}

/// Opens a packet socket that is bound to the interface.
fn packets(name: &str) -> Result<OwnedFd> {
    let (family, kind) = (AddressFamily::Packet, SockType::Raw);
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all-zero bytes are a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).expect("a family");
    address.sll_ifindex = i32::try_from(if_nametoindex(name)?).expect("a number");
    with_address(libc::bind, &socket, &address)?;
    Ok(socket)
}

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
pub struct Nfc {
    file: File,
    /// Stays open as long as the controller: closing it makes the kernel stop polling for cards.
    family: Netlink,
}

impl Nfc {
    /// Creates a controller, which is off.
    pub fn new() -> Result<Nfc> {
        let file = read_write("/dev/virtual_nci")?;
        Ok(Nfc { file, family: Netlink::open("nfc")? })
    }

    fn number(&self) -> u32 {
        let mut number = 0_u32;
        // SAFETY: the request only writes the number.
        let asked = unsafe { ioctl(&self.file, IOCTL_GET_NCIDEV_IDX, &raw mut number) };
        asked.expect("the controller has a number");
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

    pub fn poll(&self) -> Result<()> {
        let protocols = (1_u32 << NFC_PROTO_ISO14443).to_ne_bytes();
        self.request(NFC_CMD_START_POLL, &[(NFC_ATTR_PROTOCOLS, &protocols)]).map(drop)
    }

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
        let (family, kind) = (AddressFamily::Nfc, SockType::SeqPacket);
        let socket = socket(family, kind, SockFlag::empty(), None)?;
        let family = u32::try_from(libc::AF_NFC).expect("a family");
        let protocol = NFC_PROTO_ISO14443;
        let address = Address { family, device: self.number(), target: 0, protocol };
        with_address(libc::connect, &socket, &address)?;
        Ok(Card(socket))
    }

    fn request(&self, command: u8, more: &[(u16, &[u8])]) -> Result<Vec<u8>> {
        let number = self.number().to_ne_bytes();
        let mut attributes: Vec<(u16, &[u8])> = vec![(NFC_ATTR_DEVICE_INDEX, &number)];
        attributes.extend_from_slice(more);
        self.family.request(command, &attributes)
    }
}

pub struct Card(OwnedFd);

impl Card {
    pub fn send(&self) {
        send(self.0.as_raw_fd(), b"kcov", MsgFlags::empty()).expect("sent");
    }

    pub fn receive(&self) {
        let received = recv(self.0.as_raw_fd(), &mut [0; 64], MsgFlags::empty());
        assert!(received.expect("an answer") > 0);
    }
}

fn response(command: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a payload");
    [&[RESPONSE | command[0] & 0x0f, command[1], length], payload].concat()
}

const HCI_COMMAND: u8 = 1;
const HCI_EVENT: u8 = 4;
const HCI_VENDOR: u8 = 0xff;
/// The event that completes a command.
const HCI_COMMAND_COMPLETE: u8 = 0x0e;

/// A controller, which disappears when dropped.
pub struct Bluetooth(File);

impl Bluetooth {
    pub fn open() -> Result<File> {
        read_write("/dev/vhci")
    }

    pub fn new() -> Result<Bluetooth> {
        let mut file = Bluetooth::open()?;
        file.write_all(&[HCI_VENDOR, 0])?;
        Ok(Bluetooth(file))
    }

    /// Waits for the next command and completes it.
    pub fn answer(&mut self) {
        let mut packet = [0; 512];
        loop {
            let length = self.0.read(&mut packet).expect("a packet");
            if length >= 3 && packet[0] == HCI_COMMAND {
                break;
            }
        }
        // The 1 allows one more command; the 0 is success.
        let [_, low, high, ..] = packet;
        let event = [HCI_EVENT, HCI_COMMAND_COMPLETE, 4, 1, low, high, 0];
        self.0.write_all(&event).expect("the kernel takes the answer");
    }
}

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
