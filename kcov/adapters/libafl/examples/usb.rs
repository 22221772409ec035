//! Fuzzes the descriptors of a USB device with bytes. Needs Linux with a dummy controller and raw
//! gadgets, such as the target `linux-uml`, and root.
//!
//! An input is a device descriptor and a configuration. The kernel reads them in a worker of the
//! hub, so remote coverage is all that there is.

#[cfg(target_os = "linux")]
mod linux {
    use kcov::remote::linux::{GlobalHandle, Remote};
    use kcov_libafl::Fuzz;
    use libafl::executors::ExitKind;
    use std::fs::File;
    use std::io::{Error, Result};
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};
    use std::{mem, ptr, thread};

    /// How long the kernel may take for the device.
    const LIMIT: Duration = Duration::from_millis(400);

    // The requests and structures of linux/usb/raw_gadget.h.
    const INIT: libc::Ioctl = libc::_IOW::<Init>(b'U' as u32, 0);
    const RUN: libc::Ioctl = libc::_IO(b'U' as u32, 1);
    const EVENT_FETCH: libc::Ioctl = libc::_IOR::<[u32; 2]>(b'U' as u32, 2);
    const EP0_WRITE: libc::Ioctl = libc::_IOW::<[u32; 2]>(b'U' as u32, 3);
    const EP0_READ: libc::Ioctl = libc::_IOWR::<[u32; 2]>(b'U' as u32, 4);
    const EP0_STALL: libc::Ioctl = libc::_IO(b'U' as u32, 12);
    const CONTROL: u32 = 2;
    const HIGH_SPEED: u8 = 3;

    #[repr(C)]
    struct Init {
        driver: [u8; 128],
        device: [u8; 128],
        speed: u8,
    }

    /// An event with a control request, or a transfer of endpoint 0.
    #[repr(C)]
    struct Message {
        kind: u32,
        length: u32,
        data: [u8; 512],
    }

    impl Message {
        fn new(data: &[u8]) -> Message {
            let mut message = Message { kind: 0, length: data.len() as u32, data: [0; 512] };
            message.data[..data.len()].copy_from_slice(data);
            message
        }
    }

    fn ioctl<T>(gadget: &File, request: libc::Ioctl, argument: *mut T) -> Result<()> {
        // SAFETY: the callers pass an argument of the type and size that the request encodes.
        match unsafe { libc::ioctl(gadget.as_raw_fd(), request, argument) } {
            -1 => Err(Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// The bytes of a name, filled up with zeros.
    fn name(name: &[u8]) -> [u8; 128] {
        let mut bytes = [0; 128];
        bytes[..name.len()].copy_from_slice(name);
        bytes
    }

    /// Connects a device and answers the kernel until it has chosen a configuration.
    fn enumerate(input: &[u8]) -> Result<()> {
        let gadget = File::options().read(true).write(true).open("/dev/raw-gadget")?;
        let (driver, device) = (name(b"dummy_udc"), name(b"dummy_udc.0"));
        let mut init = Init { driver, device, speed: HIGH_SPEED };
        ioctl(&gadget, INIT, &mut init)?;
        ioctl(&gadget, RUN, ptr::null_mut::<()>())?;
        let (device, configuration) = input.split_at(input.len().min(18));
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            let mut event = Message::new(&[0; 8]);
            ioctl(&gadget, EVENT_FETCH, &mut event)?;
            if event.kind != CONTROL {
                continue;
            }
            let [kind, request, _, value, _, _, low, high, ..] = event.data;
            let answer = match (kind, request, value) {
                (0x80, 6, 1) => device,
                (0x80, 6, 2) => configuration,
                (0, 9, _) => return ioctl(&gadget, EP0_READ, &mut Message::new(&[])),
                _ => {
                    ioctl(&gadget, EP0_STALL, ptr::null_mut::<()>())?;
                    continue;
                }
            };
            let most = usize::from(u16::from_le_bytes([low, high])).min(512);
            let answer = &answer[..answer.len().min(most)];
            ioctl(&gadget, EP0_WRITE, &mut Message::new(answer))?;
        }
        Ok(())
    }

    extern "C" fn nothing(_: libc::c_int) {}

    /// Interrupts this thread again and again, so that no call of it waits for long.
    fn interrupt_often() {
        // SAFETY: all zeros are an action without flags: the kernel does not restart calls.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = nothing as extern "C" fn(_) as usize;
        // SAFETY: the handler does nothing, and the old action is not wanted.
        unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) };
        // SAFETY: it has no preconditions.
        let this = unsafe { libc::pthread_self() };
        thread::spawn(move || {
            loop {
                thread::sleep(LIMIT);
                // SAFETY: the main thread lives as long as the process.
                unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
            }
        });
    }

    pub fn main() -> std::result::Result<(), libafl::Error> {
        interrupt_often();
        // A device with one configuration, of one interface without endpoints: a mouse.
        let device = [18, 1, 0, 2, 0, 0, 0, 64, 0x6b, 4, 1, 1, 0, 1, 0, 0, 0, 1];
        let configuration = [9, 2, 18, 0, 1, 1, 0, 0x80, 50, 9, 4, 0, 0, 0, 3, 1, 2, 0];
        let seed = [device, configuration].concat();
        let bus = Remote::new().global(GlobalHandle::usb(1));
        Fuzz::new().background(bus).args()?.bytes(&[&seed], |input| {
            // The kernel may refuse the device, or be interrupted.
            let _ = enumerate(input);
            ExitKind::Ok
        })?;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
use linux::main;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("usb needs Linux");
}
