//! The NetBSD device, whose requests take pointers, and values of sysctl(3).

mod probe;
mod vhci;

pub use probe::probe;
pub use vhci::explored;

use crate::errno::{Errno, Result};
use crate::raw::{Device, LONG, thread, wait_for};
use kcov_sys::netbsd as sys;
use std::ffi::{CStr, c_int, c_long, c_uint};
use std::os::fd::AsRawFd as _;
use std::ptr::{from_ref, null, null_mut};

pub const KCOV_MODE_NONE: u32 = sys::KCOV_MODE_NONE as u32;
/// The mode for program counters, under its Linux name.
pub const KCOV_TRACE_PC: u32 = sys::KCOV_MODE_TRACE_PC as u32;
/// The mode for comparisons, under its Linux name.
pub const KCOV_TRACE_CMP: u32 = sys::KCOV_MODE_TRACE_CMP as u32;

/// The bytes of a word of the buffer, `kcov_int_t`.
pub fn word_bytes() -> usize {
    size_of::<sys::kcov_int_t>()
}

pub const DEVICE: &str = sys::KCOV_PATH;

pub const MODES: &[u32] = &[KCOV_MODE_NONE, KCOV_TRACE_PC, KCOV_TRACE_CMP];

pub const GREATEST: u64 = sys::KCOV_BUF_MAX_ENTRIES;

/// The size in words of a buffer that holds all records of an exec.
pub const EXEC_WORDS: u64 = GREATEST;

/// The greatest size of a buffer, in words.
pub fn max_words() -> u64 {
    GREATEST
}

unsafe extern "C" {
    /// The `libc` crate does not declare this function for NetBSD.
    fn syscall(number: c_int, ...) -> c_int;
}

/// `SYS_read` (`sys/sys/syscall.h`).
const READ: c_int = 3;

/// Makes the traced system call by number, since the C library's wrapper may do more.
pub(crate) fn refused_read() -> Result<()> {
    let (fd, count): (c_long, c_long) = (-1, 0);
    // SAFETY: the kernel rejects the file descriptor before it looks at the buffer.
    let returned = unsafe { syscall(READ, fd, null_mut::<u8>(), count) };
    Errno::check(returned).map(drop)
}

/// Enables a device whose enabling thread has ended. The kernel may free the device only when other
/// threads have come and gone.
pub fn enable_freed(device: &Device, mode: u32) -> Result<()> {
    let mut enabled = Ok(());
    let _ = wait_for(LONG, || {
        thread(|| ());
        enabled = device.enable(mode);
        enabled.is_ok()
    });
    enabled
}

/// Runs `body`. This kernel prints no messages that would have to be kept off the console.
pub fn with_console_off<T>(body: impl FnOnce() -> T) -> T {
    body()
}

/// A source of remote coverage, for attaching a device to.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub subsystem: u64,
    pub id: u64,
}

impl Source {
    /// A port of a virtual USB host controller.
    pub fn vhci(bus: u64, port: u64) -> Source {
        Source { subsystem: sys::KCOV_REMOTE_VHCI, id: sys::kcov_remote_vhci_id(bus, port) }
    }
}

impl Device {
    /// Issues any request. `address` is the address of its argument.
    pub fn request(&self, number: u32, address: usize) -> Result<()> {
        let fd = self.as_raw_fd();
        // SAFETY: no request of the driver writes through its argument, and the kernel returns
        // EFAULT for an address that it cannot read.
        let returned = unsafe { libc::ioctl(fd, number.into(), address) };
        // A successful request always returns 0.
        Errno::check(returned).map(|returned| assert_eq!(returned, 0, "request {number:#x}"))
    }

    fn request_with<T>(&self, number: u32, argument: &T) -> Result<()> {
        self.request(number, from_ref(argument).expose_provenance())
    }

    /// `KCOV_IOC_SETBUFSIZE` with this size in entries. The name is that of the Linux request.
    pub fn init_trace(&self, entries: u64) -> Result<()> {
        self.request_with(sys::KCOV_IOC_SETBUFSIZE, &entries)
    }

    pub fn enable(&self, mode: u32) -> Result<()> {
        self.request_with(sys::KCOV_IOC_ENABLE, &mode)
    }

    pub fn disable(&self) -> Result<()> {
        self.request(sys::KCOV_IOC_DISABLE, 0)
    }

    pub fn attach(&self, source: Source) -> Result<()> {
        let Source { subsystem, id } = source;
        let argument = sys::kcov_ioc_remote_attach { subsystem, id };
        self.request_with(sys::KCOV_IOC_REMOTE_ATTACH, &argument)
    }

    pub fn detach(&self) -> Result<()> {
        self.request(sys::KCOV_IOC_REMOTE_DETACH, 0)
    }
}

/// Sets the scheduling policy `SCHED_FIFO`: the clock does not preempt this thread.
pub fn first_in_first_out() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call has no preconditions.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the thread exists, and the call only reads the parameter.
    let errno = unsafe { libc::pthread_setschedparam(this, libc::SCHED_FIFO, &raw const priority) };
    assert_eq!(errno, 0, "SCHED_FIFO");
}

pub(crate) fn sysctl_name(name: &CStr) -> Vec<c_int> {
    let mut number = [0; 12];
    let mut length = number.len();
    // SAFETY: the name ends with a zero byte, and the call gets the length of the array.
    let returned =
        unsafe { libc::sysctlnametomib(name.as_ptr(), number.as_mut_ptr(), &mut length) };
    assert_eq!(returned, 0, "{name:?}: {}", Errno::last());
    number[..length].to_vec()
}

/// Reads the value, and sets it if `new` is given.
pub(crate) fn sysctl(name: &[c_int], new: Option<&[u8]>) -> Result<Vec<u8>> {
    let mut value = vec![0; 4096];
    let mut length = value.len();
    let (set, size) = new.map_or((null(), 0), |new| (new.as_ptr().cast(), new.len()));
    let (name, number, old) = (name.as_ptr(), name.len() as c_uint, value.as_mut_ptr().cast());
    // SAFETY: the call gets the lengths of all three. It writes to `value` and `length` only.
    let returned = unsafe { libc::sysctl(name, number, old, &mut length, set, size) };
    Errno::check(returned)?;
    value.truncate(length);
    Ok(value)
}

/// The free memory of the machine, in bytes.
pub(crate) fn free_memory() -> u64 {
    let values = sysctl(&sysctl_name(c"vm.uvmexp2"), None).expect("counts of pages");
    let value = |index: usize| {
        let bytes = values[8 * index..8 * (index + 1)].try_into().expect("eight bytes");
        u64::from_ne_bytes(bytes)
    };
    // The size of a page and the number of free ones (`struct uvmexp_sysctl`).
    value(0) * value(4)
}

/// The number of interrupts of the clock since boot.
pub(crate) fn ticks() -> u32 {
    let ticks = sysctl(&sysctl_name(c"kern.hardclock_ticks"), None).expect("the number of ticks");
    u32::from_ne_bytes(ticks.try_into().expect("four bytes"))
}
