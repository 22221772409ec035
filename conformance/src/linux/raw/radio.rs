//! Two simulated radios: one joins a network of its own, the other sends it frames.
//!
//! The kernel receives a frame in a softirq, and a worker processes it later. Both are remote
//! sections with the handle of the sending thread.

use super::Netlink;
use super::helpers::set_interface;
use crate::errno::{Errno, Result};
use nix::net::if_::if_nametoindex;
use std::fs;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

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

/// The sending radio.
#[derive(Debug)]
pub struct Radio {
    socket: OwnedFd,
}

impl Radio {
    /// Whether there are two radios.
    pub fn present() -> bool {
        let there = |name| fs::exists(format!("/sys/class/net/{name}/phy80211"));
        [RECEIVER, SENDER].into_iter().all(|name| there(name).is_ok_and(|there| there))
    }

    /// Sets both radios up. They belong to the guest and stay that way.
    pub fn new() -> Result<Radio> {
        let family = Netlink::open("nl80211")?;
        let frequency = MEGAHERTZ.to_ne_bytes();
        for (name, kind) in [(RECEIVER, NL80211_IFTYPE_ADHOC), (SENDER, NL80211_IFTYPE_MONITOR)] {
            let index = if_nametoindex(name)?.to_ne_bytes();
            // Another check may have left the interface up.
            set_interface(name, false)?;
            let kind = kind.to_ne_bytes();
            let attributes: [(u16, &[u8]); 2] =
                [(NL80211_ATTR_IFINDEX, &index), (NL80211_ATTR_IFTYPE, &kind)];
            family.request(NL80211_CMD_SET_INTERFACE, &attributes)?;
            set_interface(name, true)?;
            let (command, rest): (u8, &[(u16, &[u8])]) = if name == SENDER {
                (NL80211_CMD_SET_WIPHY, &[])
            } else {
                let network: &[(u16, &[u8])] = &[
                    (NL80211_ATTR_SSID, b"kcov"),
                    (NL80211_ATTR_MAC, &NETWORK),
                    (NL80211_ATTR_FREQ_FIXED, &[]),
                ];
                (NL80211_CMD_JOIN_IBSS, network)
            };
            let mut attributes: Vec<(u16, &[u8])> =
                vec![(NL80211_ATTR_IFINDEX, &index), (NL80211_ATTR_WIPHY_FREQ, &frequency)];
            attributes.extend_from_slice(rest);
            family.request(command, &attributes)?;
        }
        Ok(Radio { socket: packets(SENDER)? })
    }

    /// Sends a frame that asks the other radio to authenticate a station.
    pub fn send(&self) {
        // An empty radiotap header: default transmission.
        let mut frame = vec![0, 0, 8, 0, 0, 0, 0, 0];
        // A management frame of the authentication subtype, broadcast from a made-up station.
        frame.extend([0xb0, 0, 0, 0]);
        frame.extend([0xff; 6]);
        frame.extend([2, 0, 0, 0, 0, 9]);
        frame.extend(NETWORK);
        // The first step of open authentication.
        frame.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        let sent = nix::unistd::write(&self.socket, &frame);
        assert_eq!(sent, Ok(frame.len()), "the frame is sent");
    }
}

/// Returns a socket for raw frames of this interface.
fn packets(name: &str) -> Result<OwnedFd> {
    // SAFETY: the call takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the kernel has just installed this file descriptor, so nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(Errno::check(fd)?) };
    // SAFETY: all-zero bytes are a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).expect("a family");
    address.sll_ifindex = i32::try_from(if_nametoindex(name)?).expect("a number");
    let (place, size) = ((&raw const address).cast(), size_of::<libc::sockaddr_ll>());
    let size = libc::socklen_t::try_from(size).expect("a size");
    // SAFETY: the address has the size that is passed.
    Errno::check(unsafe { libc::bind(socket.as_raw_fd(), place, size) })?;
    Ok(socket)
}
