//! A Bluetooth controller played by this program.
//!
//! The kernel starts the controller with commands. It processes each answer in a remote section
//! with the handle of the thread that wrote the answer.

use crate::errno::Result;
use std::fs::File;
use std::io::{Read as _, Write as _};

const COMMAND: u8 = 1;
const EVENT: u8 = 4;
const VENDOR: u8 = 0xff;
/// The event that completes a command.
const COMMAND_COMPLETE: u8 = 0x0e;

/// A controller, which disappears when dropped.
#[derive(Debug)]
pub struct Bluetooth(File);

impl Bluetooth {
    /// Opens the interface without creating a controller.
    pub fn open() -> Result<File> {
        Ok(File::options().read(true).write(true).open("/dev/vhci")?)
    }

    /// Creates a controller.
    pub fn new() -> Result<Bluetooth> {
        let mut file = Bluetooth::open()?;
        file.write_all(&[VENDOR, 0])?;
        Ok(Bluetooth(file))
    }

    /// Waits for the next command and completes it.
    pub fn answer(&mut self) {
        let mut packet = [0; 512];
        loop {
            let length = self.0.read(&mut packet).expect("a packet");
            if length >= 3 && packet[0] == COMMAND {
                break;
            }
        }
        // The 1 allows one more command; the 0 is success.
        let [_, low, high, ..] = packet;
        let event = [EVENT, COMMAND_COMPLETE, 4, 1, low, high, 0];
        self.0.write_all(&event).expect("the kernel takes the answer");
    }
}
