//! A virtual USB host controller, vhci(4). Its ports are sources of remote coverage.

use crate::errno::{Errno, Result};
use crate::raw::{LONG, wait_for};
use kcov_sys::ioc::Encoding;
use nix::sys::stat::{Mode, SFlag, mknod, stat};
use std::ffi::{c_int, c_uint};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::ptr::from_mut;

/// The first controller's device.
const FIRST: &str = "/dev/vhci";
/// `VHCI_IOC_GET_INFO` (`sys/dev/usb/vhci.h`): the state of the port.
const GET_INFO: u32 = Encoding::NETBSD.ior(b'V', 0, size_of::<Info>());
/// `VHCI_IOC_SET_PORT`: selects the port that the file descriptor refers to.
const SET_PORT: u32 = Encoding::NETBSD.iow(b'V', 1, size_of::<c_uint>());
/// `VHCI_IOC_USB_ATTACH`: makes a device appear at the port.
const USB_ATTACH: u32 = Encoding::NETBSD.io(b'V', 10);
/// `UPS_PORT_ENABLED` (`sys/dev/usb/usb.h`).
const PORT_ENABLED: c_int = 2;
/// The size of a request that the kernel sends to a device.
const REQUEST: usize = 12;

/// `struct vhci_ioc_get_info`.
#[repr(C)]
#[derive(Default)]
struct Info {
    ports: usize,
    port: c_uint,
    status: c_int,
    address: u8,
}

/// A controller, through a file descriptor for one of its ports.
struct Controller(File);

impl Controller {
    fn open(bus: u64, port: u64) -> Result<Controller> {
        let node = (bus > 0).then(|| node(bus)).transpose()?;
        let path = node.as_deref().unwrap_or(Path::new(FIRST));
        let opened = OpenOptions::new().read(true).write(true).open(path);
        if let Some(node) = &node {
            // The file descriptor does not need it.
            let _ = std::fs::remove_file(node);
        }
        let controller =
            Controller(opened.map_err(|e| Errno(e.raw_os_error().unwrap_or(libc::EIO)))?);
        let mut port = c_uint::try_from(port).expect("a small number");
        controller.request(SET_PORT, &mut port)?;
        Ok(controller)
    }

    fn plug_in(&self) -> Result<()> {
        self.request(USB_ATTACH, &mut ())
    }

    /// Whether the kernel has sent the device a request, and waits for the answer.
    fn is_asked(&self) -> bool {
        (&self.0).read(&mut [0; REQUEST]).is_ok_and(|length| length == REQUEST)
    }

    /// Answers the request for a descriptor with one of another type, so the kernel gives up.
    fn answer(&self) {
        let (size, descriptor) = (8_u64.to_ne_bytes(), [18, 0, 0, 0, 0, 0, 0, 64]);
        let _ = (&self.0).write(&[size, descriptor].concat());
    }

    /// Whether the kernel still has to explore the port, or explores it.
    fn is_explored(&self) -> bool {
        let mut info = Info::default();
        self.request(GET_INFO, &mut info).expect("the state of the port");
        info.status & PORT_ENABLED != 0
    }

    fn request<T>(&self, number: u32, argument: &mut T) -> Result<()> {
        let address = from_mut(argument).expose_provenance();
        // SAFETY: the request reads or writes one value of the argument's type, or none.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), number.into(), address) };
        Errno::check(returned).map(drop)
    }
}

/// Makes a device node of another controller.
fn node(bus: u64) -> Result<PathBuf> {
    // The first controller's minor number is 0.
    let device = stat(FIRST)?.st_rdev | bus;
    let path = std::env::temp_dir().join(format!("vhci-{bus}-{}", std::process::id()));
    // An earlier process of this number may have left it.
    let _ = std::fs::remove_file(&path);
    mknod(&path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, device)?;
    Ok(path)
}

/// Makes a device appear at the port and runs `meanwhile` while the kernel explores it, in the
/// middle of the port's remote section. Returns after the end of the section.
pub fn explored<T>(bus: u64, port: u64, meanwhile: impl FnOnce() -> T) -> T {
    let controller = Controller::open(bus, port).expect("the controller opens");
    controller.plug_in().expect("a device appears");
    assert!(wait_for(LONG, || controller.is_asked()), "the kernel asks the new device");
    let value = meanwhile();
    let given_up = || {
        // The kernel repeats a request without an answer in time.
        controller.answer();
        let _ = controller.is_asked();
        !controller.is_explored()
    };
    assert!(wait_for(LONG, given_up), "the kernel gives the device up");
    value
}
