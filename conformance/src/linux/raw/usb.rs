//! USB devices that this program emulates, and the root hub of the dummy host controller's bus.
//!
//! The kernel's hub driver handles the connection of a [`Gadget`] in a remote section, until the
//! device is set up or has failed. Each answer of the device arrives through a softirq, which is a
//! remote section too. The driver of the [`RootHub`] answers a control request at once, and a softirq
//! hands the answer over.
//!
//! This program answers for a [`Usbip`] device over a socket. The kernel receives the answers of each
//! device in a thread of its own. Each answer is a remote section with the handle of the thread that
//! attached the device.

use super::*;
use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::os::unix::net::{UnixDatagram, UnixStream};
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
pub struct Gadget {
    fd: File,
}

impl Gadget {
    /// Opens the interface without connecting a device.
    pub fn open() -> Result<File> {
        read_write("/dev/raw-gadget")
    }

    pub fn bus() -> u64 {
        let hub = root_hub();
        let name = hub.file_name().expect("a name").to_string_lossy();
        name.trim_start_matches("usb").parse().expect("the bus has a number")
    }

    /// Waits until the hub driver has finished its work.
    pub fn finished() {
        // The driver locks the hub, and so does reading this attribute.
        let locked = fs::read_to_string(root_hub().join("bConfigurationValue"));
        locked.expect("the hub has a configuration");
    }

    /// Connects the device once the hub driver has finished with the previous one.
    pub fn connect() -> Result<Gadget> {
        Gadget::finished();
        fs::write(TIMEOUT, "600000").expect("the host waits longer");
        let (hub, bus) = (root_hub(), Gadget::bus());
        let port = hub.join(format!("{bus}-0:1.0/usb{bus}-port1"));
        fs::write(port.join("quirks"), QUIRKS).expect("the port is quick");
        // The host registers the device, and does not choose a configuration.
        fs::write(hub.join("authorized_default"), "0").expect("devices stay idle");
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
        unsafe { ioctl(&self.fd, number, argument) }
    }
}

fn root_hub() -> PathBuf {
    let controller = fs::read_dir("/sys/devices/platform/dummy_hcd.0").expect("a controller");
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("usb"))
    };
    let found = controller.map(|entry| entry.expect("an entry").path()).find(named);
    found.expect("the controller has a bus")
}

/// `struct usbdevfs_urb`.
#[repr(C)]
struct Urb {
    kind: u8,
    endpoint: u8,
    status: i32,
    flags: u32,
    buffer: *mut u8,
    length: i32,
    actual_length: i32,
    frame: i32,
    packets: i32,
    errors: i32,
    signal: u32,
    context: *mut u8,
}

const USBDEVFS_SUBMITURB: libc::Ioctl = libc::_IOR::<Urb>(LETTER, 10);
const USBDEVFS_REAPURB: libc::Ioctl = libc::_IOW::<*mut Urb>(LETTER, 12);
const USBDEVFS_URB_TYPE_CONTROL: u8 = 2;
/// `USB_REQ_GET_STATUS` of the device, with two bytes of answer, and room for these.
const GET_STATUS: [u8; 10] = [0x80, 0, 0, 0, 0, 0, 2, 0, 0, 0];

/// The open hub. While it is open, it does not fall asleep.
pub struct RootHub {
    fd: File,
    socket: UnixDatagram,
}

impl RootHub {
    pub fn present() -> bool {
        fs::exists("/sys/devices/platform/dummy_hcd.0").is_ok_and(|there| there)
    }

    /// Opens the hub, and waits until its driver is done with it.
    pub fn open() -> Result<RootHub> {
        let path = format!("/dev/bus/usb/{:03}/001", Gadget::bus());
        let fd = read_write(&path)?;
        Gadget::finished();
        Ok(RootHub { fd, socket: UnixDatagram::unbound().expect("a socket") })
    }

    /// Makes a request. Returns when a softirq has completed it, usually in the middle of a system
    /// call of this thread.
    pub fn work(&self) -> Result<()> {
        let mut buffer = GET_STATUS;
        // SAFETY: all-zero bytes are a valid request block, with null pointers.
        let mut urb: Urb = unsafe { std::mem::zeroed() };
        urb.kind = USBDEVFS_URB_TYPE_CONTROL;
        (urb.buffer, urb.length) = (buffer.as_mut_ptr(), GET_STATUS.len() as i32);
        self.request(USBDEVFS_SUBMITURB, &raw mut urb)?;
        // The call unlocks the socket, which runs the pending softirqs.
        setsockopt(&self.socket, sockopt::RcvBuf, &(1 << 16))?;
        let mut completed: *mut Urb = null_mut();
        self.request(USBDEVFS_REAPURB, &raw mut completed)
    }

    /// Keeps the kernel's thread for softirqs from running before this thread sleeps. So all work of
    /// the hub completes in this thread.
    pub fn complete_here() {
        let priority: i32 = 1;
        let number = libc::SYS_sched_setscheduler;
        // SAFETY: the structure that the call reads has this number as its only field.
        let returned = unsafe { libc::syscall(number, 0, libc::SCHED_FIFO, &raw const priority) };
        Errno::check(returned).expect("a priority");
    }

    fn request<T>(&self, number: libc::Ioctl, argument: *mut T) -> Result<()> {
        // SAFETY: the argument is what the request reads or writes. The kernel writes to the
        // request block and its buffer when the block is reaped, before `work` returns.
        unsafe { ioctl(&self.fd, number, argument) }
    }
}

const CONTROLLER: &str = "/sys/devices/platform/vhci_hcd.0";
const USBIP_CMD_SUBMIT: u32 = 1;
const USBIP_RET_SUBMIT: u32 = 3;
/// The size of the header of every message, which is in network byte order.
const HEADER: usize = 48;
/// `-EPIPE`, with which a device rejects an unknown request.
const STALL: i32 = -32;
/// How long to wait for a request, in milliseconds. The host takes less between its attempts.
const PAUSE: u16 = 3000;

/// A device, which is detached when dropped.
pub struct Usbip {
    port: u32,
    socket: UnixStream,
}

impl Usbip {
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
