//! A USB device at the other end of a socket. This program plays the device.
//!
//! The kernel has a thread per device that waits for answers. It receives each answer in a remote
//! section with the handle of the thread that attached the device.

use nix::poll::{PollFd, PollFlags, poll};
use std::fs;
use std::io::{self, Read as _, Write as _};
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
/// How long to wait for a request, in milliseconds. The host takes less between its attempts.
const PAUSE: u16 = 3000;

/// A device, which is detached when dropped.
#[derive(Debug)]
pub struct Usbip {
    port: u32,
    socket: UnixStream,
}

impl Usbip {
    /// Whether there is a host controller.
    pub fn present() -> bool {
        fs::exists(CONTROLLER).is_ok_and(|there| there)
    }

    /// Attaches a device to this port of the controller.
    pub fn attach(port: u32) -> Usbip {
        let (ours, theirs) = UnixStream::pair().expect("two sockets");
        let what = format!("{port} {} 1 {USB_SPEED_HIGH}", theirs.as_raw_fd());
        fs::write(format!("{CONTROLLER}/attach"), what).expect("a free port");
        Usbip { port, socket: ours }
    }

    /// Waits for a request, longer than the host takes between two. Returns whether there is one.
    fn is_asked(&self) -> bool {
        let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        poll(&mut socket, PAUSE) == Ok(1)
    }

    /// Waits for the host's next request and rejects it.
    pub fn refuse(&mut self) -> io::Result<()> {
        let mut message = [0; HEADER];
        self.socket.read_exact(&mut message)?;
        if message[..4] != USBIP_CMD_SUBMIT.to_be_bytes() {
            return Err(io::Error::other("the host sends something else"));
        }
        let mut answer = [0; HEADER];
        answer[..4].copy_from_slice(&USBIP_RET_SUBMIT.to_be_bytes());
        answer[4..8].copy_from_slice(&message[4..8]);
        answer[20..24].copy_from_slice(&STALL.to_be_bytes());
        self.socket.write_all(&answer)
    }
}

impl Drop for Usbip {
    fn drop(&mut self) {
        // If a device is detached while the host waits for an answer, the hub may wait for ever,
        // and see no other device. So the device rejects all requests until the host gives up.
        while self.is_asked() && self.refuse().is_ok() {}
        // The controller may already have given up on the device.
        let _ = fs::write(format!("{CONTROLLER}/detach"), self.port.to_string());
    }
}
