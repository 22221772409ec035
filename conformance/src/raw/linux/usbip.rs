//! A USB device at the other end of a socket, which this program plays.
//!
//! A kernel thread for each device waits for its answers. Each is received in a section that is
//! marked with the handle of the thread that attached the device.

use crate::errno::Result;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

const CONTROLLER: &str = "/sys/devices/platform/vhci_hcd.0";
const USB_SPEED_HIGH: u8 = 3;
const USBIP_CMD_SUBMIT: u32 = 1;
const USBIP_RET_SUBMIT: u32 = 3;
/// All messages begin with a header of this size, in the network's order.
const HEADER: usize = 48;
/// The number of a broken pipe, by which a device says that it does not know a request.
const STALL: i32 = -32;

/// A device, which is detached when it is dropped.
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

    /// Attaches a device to that port of the controller.
    ///
    /// # Panics
    ///
    /// If the controller does not take it.
    pub fn attach(port: u32) -> Result<Usbip> {
        let (ours, theirs) = UnixStream::pair().expect("two sockets");
        let what = format!("{port} {} 1 {USB_SPEED_HIGH}", theirs.as_raw_fd());
        fs::write(format!("{CONTROLLER}/attach"), what).expect("a free port");
        Ok(Usbip { port, socket: ours })
    }

    /// Waits until the host asks for something, and refuses it.
    ///
    /// # Panics
    ///
    /// If the host says anything else.
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
        // The controller may have given it up already.
        let _ = fs::write(format!("{CONTROLLER}/detach"), self.port.to_string());
    }
}
