//! A virtual USB host controller, vhci(4). Its ports are sources of remote coverage.

use crate::errno::{Errno, Result};
use kcov_sys::ioc::Encoding;
use std::ffi::c_uint;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::ptr::from_ref;

/// `VHCI_IOC_SET_PORT` (`sys/dev/usb/vhci.c`): selects the port that the file descriptor refers to.
const SET_PORT: u32 = Encoding::NETBSD.iow(b'V', 1, size_of::<c_uint>());
/// `VHCI_IOC_USB_ATTACH`: makes a device appear at the port.
const USB_ATTACH: u32 = Encoding::NETBSD.io(b'V', 10);

/// A controller, through a file descriptor for one of its ports.
#[derive(Debug)]
pub struct Controller(File);

impl Controller {
    /// Opens the first controller for this port.
    pub fn open(port: u32) -> Result<Controller> {
        let opened = File::options().read(true).write(true).open("/dev/vhci");
        let controller =
            Controller(opened.map_err(|e| Errno(e.raw_os_error().unwrap_or(libc::EIO)))?);
        controller.request(SET_PORT, from_ref::<c_uint>(&port).expose_provenance())?;
        Ok(controller)
    }

    /// Makes a device appear at the port. It never answers, so the kernel gives up in the end.
    pub fn plug_in(&self) -> Result<()> {
        self.request(USB_ATTACH, 0)
    }

    fn request(&self, number: u32, address: usize) -> Result<()> {
        // SAFETY: neither request writes through its argument.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), number.into(), address) };
        Errno::check(returned).map(drop)
    }
}
