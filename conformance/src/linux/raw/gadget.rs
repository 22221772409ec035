//! A USB device played by this program, on the bus of the dummy host controller driver.
//!
//! The kernel's hub driver handles the connection in a remote section, until the device is set up
//! or has failed. Each answer of the device arrives through a softirq, which is a remote section
//! too.

use crate::errno::{Errno, Result};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

/// `struct usb_raw_init`.
#[repr(C)]
struct Init {
    driver: [u8; 128],
    device: [u8; 128],
    speed: u8,
}

/// `struct usb_raw_event` with room for a control request.
#[repr(C)]
struct Event {
    kind: u32,
    length: u32,
    data: [u8; 8],
}

/// `struct usb_raw_ep_io` with room for a device descriptor.
#[repr(C)]
struct Transfer {
    endpoint: u16,
    flags: u16,
    length: u32,
    data: [u8; 18],
}

const LETTER: u32 = b'U' as u32;
const USB_RAW_IOCTL_INIT: libc::Ioctl = libc::_IOW::<Init>(LETTER, 0);
const USB_RAW_IOCTL_RUN: libc::Ioctl = libc::_IO(LETTER, 1);
// The request numbers encode the sizes of the structures without their data.
const USB_RAW_IOCTL_EVENT_FETCH: libc::Ioctl = libc::_IOR::<[u32; 2]>(LETTER, 2);
const USB_RAW_IOCTL_EP0_WRITE: libc::Ioctl = libc::_IOW::<[u32; 2]>(LETTER, 3);
const USB_RAW_EVENT_CONTROL: u32 = 2;
const USB_SPEED_HIGH: u8 = 3;

const USB_DT_DEVICE: u8 = 1;
const USB_DT_CONFIG: u8 = 2;
/// A device without a class of its own, with 64-byte packets and one configuration.
const DEVICE: [u8; 18] = [18, 1, 0, 2, 0, 0, 0, 64, 0x4b, 0x63, 1, 0, 0, 1, 0, 0, 0, 1];
/// A configuration without interfaces.
const CONFIGURATION: [u8; 9] = [9, 2, 9, 0, 0, 1, 0, 0x80, 50];

/// How many milliseconds the host waits for the first answer. After the default of 5,000 it asks for
/// less, and the answer of a slow program no longer fits.
const TIMEOUT: &str = "/sys/module/usbcore/parameters/initial_descriptor_timeout";
/// `USB_PORT_QUIRK_OLD_SCHEME` and `USB_PORT_QUIRK_FAST_ENUM`: one short reset, before the first
/// request. With more of them, a check takes a second longer.
const QUIRKS: &str = "3";

/// A connected device. Dropping it unplugs it.
#[derive(Debug)]
pub struct Gadget {
    fd: OwnedFd,
}

impl Gadget {
    /// Opens the interface without connecting a device.
    pub fn open() -> Result<OwnedFd> {
        let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
        Ok(nix::fcntl::open("/dev/raw-gadget", flags, Mode::empty())?)
    }

    /// Returns the number of the bus.
    pub fn bus() -> u64 {
        let hub = root_hub();
        let name = hub.file_name().expect("a name").to_string_lossy();
        name.trim_start_matches("usb").parse().expect("the bus has a number")
    }

    /// Waits until the hub driver has finished its work.
    pub fn finished() {
        // The driver locks the hub, and so does reading this attribute.
        let locked = std::fs::read_to_string(root_hub().join("bConfigurationValue"));
        locked.expect("the hub has a configuration");
    }

    /// Connects the device once the hub driver has finished with the previous one.
    pub fn connect() -> Result<Gadget> {
        Gadget::finished();
        std::fs::write(TIMEOUT, "600000").expect("the host waits longer");
        let (hub, bus) = (root_hub(), Gadget::bus());
        let port = hub.join(format!("{bus}-0:1.0/usb{bus}-port1"));
        std::fs::write(port.join("quirks"), QUIRKS).expect("the port is quick");
        // The host registers the device, and does not choose a configuration.
        std::fs::write(hub.join("authorized_default"), "0").expect("devices stay idle");
        let gadget = Gadget { fd: Gadget::open()? };
        let mut init = Init { driver: [0; 128], device: [0; 128], speed: USB_SPEED_HIGH };
        init.driver[..9].copy_from_slice(b"dummy_udc");
        init.device[..11].copy_from_slice(b"dummy_udc.0");
        gadget.request(USB_RAW_IOCTL_INIT, &mut init)?;
        gadget.request(USB_RAW_IOCTL_RUN, std::ptr::null_mut::<u8>())?;
        Ok(gadget)
    }

    /// Waits until the host requests the device descriptor, and returns the length it allows.
    pub fn asked(&self) -> u16 {
        let (descriptor, length) = self.control();
        assert_eq!(descriptor, USB_DT_DEVICE, "get the device descriptor");
        length
    }

    /// Sends the host the device descriptor, cut to the requested length.
    pub fn answer(&self, asked: u16) {
        self.send(&DEVICE, asked);
    }

    /// Answers until the host has set the device up, which ends the hub driver's section.
    pub fn set_up(&self) {
        // The first answer ends with the configuration's length. So every kernel asks twice.
        for part in [&CONFIGURATION[..4], &CONFIGURATION] {
            loop {
                match self.control() {
                    (USB_DT_DEVICE, asked) => self.answer(asked),
                    (USB_DT_CONFIG, asked) => break self.send(part, asked),
                    (other, _) => panic!("get descriptor {other}"),
                }
            }
        }
        Gadget::finished();
    }

    /// Waits for a request, and returns the descriptor and the length that it asks for.
    fn control(&self) -> (u8, u16) {
        loop {
            let mut event = Event { kind: 0, length: 8, data: [0; 8] };
            self.request(USB_RAW_IOCTL_EVENT_FETCH, &mut event).expect("an event");
            if event.kind == USB_RAW_EVENT_CONTROL {
                let [kind, request, _, descriptor, _, _, low, high] = event.data;
                assert_eq!([kind, request], [0x80, 6], "get a descriptor");
                return (descriptor, u16::from_le_bytes([low, high]));
            }
        }
    }

    fn send(&self, descriptor: &[u8], asked: u16) {
        let length = descriptor.len().min(asked.into());
        let mut transfer = Transfer { endpoint: 0, flags: 0, length: 0, data: [0; 18] };
        transfer.data[..length].copy_from_slice(&descriptor[..length]);
        transfer.length = u32::try_from(length).expect("a length");
        self.request(USB_RAW_IOCTL_EP0_WRITE, &mut transfer).expect("the answer is sent");
    }

    fn request<T>(&self, number: libc::Ioctl, argument: *mut T) -> Result<()> {
        // SAFETY: the argument is the structure that the request uses, or null if it uses none.
        let returned = unsafe { libc::ioctl(self.fd.as_raw_fd(), number, argument) };
        Errno::check(returned).map(drop)
    }
}

/// Returns the directory of the bus's root hub.
pub(super) fn root_hub() -> PathBuf {
    let controller = std::fs::read_dir("/sys/devices/platform/dummy_hcd.0").expect("a controller");
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("usb"))
    };
    let found = controller.map(|entry| entry.expect("an entry").path()).find(named);
    found.expect("the controller has a bus")
}
