//! A USB device at the other end of a socket. This program plays the device.
//!
//! The kernel has a thread per device that waits for answers. It receives each answer in a remote
//! section with the handle of the thread that attached the device.

use crate::raw::{LONG, wait_for};
use nix::poll::{PollFd, PollFlags, poll};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;

const CONTROLLER: &str = "/sys/devices/platform/vhci_hcd.0";
const USB_SPEED_HIGH: u8 = 3;
const USBIP_CMD_SUBMIT: u32 = 1;
const USBIP_RET_SUBMIT: u32 = 3;
/// The size of the header of every message, which is in network byte order.
const HEADER: usize = 48;
/// `-EPIPE`, with which a device rejects an unknown request.
const STALL: i32 = -32;
/// How long a device waits for the host's first request, in milliseconds.
const PATIENCE: u16 = 10_000;
/// How often to attach a device.
const ATTEMPTS: usize = 5;

/// A device, which is detached when dropped.
#[derive(Debug)]
pub struct Usbip {
    port: u32,
    socket: UnixStream,
}

impl Usbip {
    /// Whether there is a host controller.
    #[must_use]
    pub fn present() -> bool {
        fs::exists(CONTROLLER).is_ok_and(|there| there)
    }

    /// Attaches a device to this port of the controller and waits for the host's first request. The
    /// hub can miss a device while it gives up on another, so the device is attached until it asks.
    ///
    /// # Panics
    ///
    /// If the controller rejects the device or the host asks for nothing.
    pub fn attach(port: u32) -> Usbip {
        let asked = |device: &Usbip| {
            let mut socket = [PollFd::new(device.socket.as_fd(), PollFlags::POLLIN)];
            poll(&mut socket, PATIENCE) == Ok(1)
        };
        let mut attempts = (0..ATTEMPTS).map(|_| Self::attach_once(port));
        attempts.find(asked).expect("a request of the host")
    }

    fn attach_once(port: u32) -> Usbip {
        let (ours, theirs) = UnixStream::pair().expect("two sockets");
        let what = format!("{port} {} 1 {USB_SPEED_HIGH}", theirs.as_raw_fd());
        // The controller takes a while to detach an earlier device.
        let attached = || fs::write(format!("{CONTROLLER}/attach"), &what).is_ok();
        assert!(wait_for(LONG, attached), "a free port");
        Usbip { port, socket: ours }
    }

    /// Waits for the host's next request and rejects it.
    ///
    /// # Panics
    ///
    /// If the host sends something else.
    pub fn refuse(&mut self) {
        let mut message = [0; HEADER];
        self.socket.read_exact(&mut message).expect("a request");
        assert_eq!(message[..4], USBIP_CMD_SUBMIT.to_be_bytes());
        let mut answer = [0; HEADER];
        answer[..4].copy_from_slice(&USBIP_RET_SUBMIT.to_be_bytes());
        answer[4..8].copy_from_slice(&message[4..8]);
        answer[20..24].copy_from_slice(&STALL.to_be_bytes());
        self.socket.write_all(&answer).expect("the answer is taken");
    }
}

impl Drop for Usbip {
    fn drop(&mut self) {
        // The controller may already have given up on the device.
        let _ = fs::write(format!("{CONTROLLER}/detach"), self.port.to_string());
    }
}
