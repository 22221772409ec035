//! A Bluetooth controller played by this program.
//!
//! The kernel starts the controller with commands, and treats each answer in a section that is
//! marked with the handle of the thread that wrote it.

use crate::errno::{Errno, Result};
use std::fs::File;
use std::io::{Read as _, Write as _};

const COMMAND: u8 = 1;
const EVENT: u8 = 4;
const VENDOR: u8 = 0xff;
/// The event that a command is done.
const COMMAND_COMPLETE: u8 = 0x0e;

/// A controller, which goes when it is dropped.
#[derive(Debug)]
pub struct Bluetooth(File);

impl Bluetooth {
    /// Opens the interface. There is no controller yet.
    pub fn open() -> Result<File> {
        let opened = File::options().read(true).write(true).open("/dev/vhci");
        opened.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Makes a controller.
    pub fn new() -> Result<Bluetooth> {
        let mut file = Bluetooth::open()?;
        let written = file.write(&[VENDOR, 0]);
        written.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(Bluetooth(file))
    }

    /// Waits for the next command, and says that it is done.
    ///
    /// # Panics
    ///
    /// If the kernel does not take the answer.
    pub fn answer(&mut self) {
        let mut packet = [0; 512];
        loop {
            let length = self.0.read(&mut packet).expect("a packet");
            if length >= 3 && packet[0] == COMMAND {
                break;
            }
        }
        // One more command is welcome; this one was carried out.
        let [_, low, high, ..] = packet;
        let event = [EVENT, COMMAND_COMPLETE, 4, 1, low, high, 0];
        self.0.write_all(&event).expect("the kernel takes the answer");
    }
}
