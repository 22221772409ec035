//! Helpers that several checks need besides the device.

use crate::errno::{Errno, Result};
use kcov_sys::linux::{KCOV_REMOTE_MAX_HANDLES, KCOV_TRACE_PC, kcov_remote_arg};
use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The argument of `KCOV_REMOTE_ENABLE`, built up field by field.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The mode.
    pub mode: u32,
    /// The buffer size of each section in words.
    pub area: u32,
    /// The common handle.
    pub common: u64,
    /// The array of handles.
    pub handles: Vec<u64>,
}

impl Default for Remote {
    /// No handles, which the kernel accepts. The area is never 0, because the kernel warns when a
    /// section starts with an area of size 0.
    fn default() -> Remote {
        Remote { mode: KCOV_TRACE_PC, area: 4096, common: 0, handles: Vec::new() }
    }
}

impl Remote {
    /// One handle in the array.
    pub fn of(handle: u64) -> Remote {
        Remote { handles: vec![handle], ..Remote::default() }
    }

    /// A common handle.
    pub fn common(handle: u64) -> Remote {
        Remote { common: handle, ..Remote::default() }
    }

    /// Builds the structure for the kernel. It has room for the maximum number of handles, and
    /// states the requested number even if that exceeds the maximum.
    pub(super) fn structure(&self) -> kcov_remote_arg<{ KCOV_REMOTE_MAX_HANDLES as usize }> {
        let mut handles = [0; KCOV_REMOTE_MAX_HANDLES as usize];
        for (place, &handle) in handles.iter_mut().zip(&self.handles) {
            *place = handle;
        }
        kcov_remote_arg {
            trace_mode: self.mode,
            area_size: self.area,
            num_handles: u32::try_from(self.handles.len()).expect("a number of handles"),
            _pad: 0,
            common_handle: self.common,
            handles,
        }
    }
}

/// Runs `body` while kernel messages stay off the console. They still go to the log.
pub fn with_console_off<T>(body: impl FnOnce() -> T) -> T {
    const OFF: i32 = 6;
    const ON: i32 = 7;
    let console = |action| {
        // SAFETY: these actions take no buffer.
        let returned = unsafe { libc::klogctl(action, std::ptr::null_mut(), 0) };
        assert_eq!(returned, 0, "klogctl");
    };
    console(OFF);
    let value = body();
    // A console may print from its own thread, which checks the level only then.
    std::thread::sleep(Duration::from_millis(20));
    console(ON);
    value
}

/// Whether this process has a sleeping thread with this name prefix.
pub(super) fn sleeping_thread(name: &str) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").expect("the threads");
    threads.flatten().any(|thread| {
        // A thread may end in the meantime.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { return false };
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
        stat.contains(&format!("({name}")) && state == Some(b'S')
    })
}

/// Bytes that the kernel has allocated with vmalloc, as it allocates the buffers.
pub fn vmalloc_used() -> u64 {
    memory("VmallocUsed") * 1024
}

/// Reads the kernel's log since boot, as far as its buffer reaches.
pub fn kernel_log() -> Result<String> {
    const SYSLOG_ACTION_READ_ALL: libc::c_int = 3;
    let mut log = vec![0_u8; 1 << 20];
    let size = libc::c_int::try_from(log.len()).expect("a small buffer");
    // SAFETY: the kernel writes at most `size` bytes, and the buffer has that many.
    let read = unsafe { libc::klogctl(SYSLOG_ACTION_READ_ALL, log.as_mut_ptr().cast(), size) };
    let read = usize::try_from(Errno::check(read)?).expect("a length");
    Ok(String::from_utf8_lossy(&log[..read]).into_owned())
}

/// Free memory in bytes.
pub fn free_memory() -> u64 {
    memory("MemFree") * 1024
}

/// The kernel's unreclaimable slab memory in KiB.
fn kernel_memory() -> u64 {
    memory("SUnreclaim")
}

/// Reads a field of `/proc/meminfo`, in KiB.
fn memory(what: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
    let rest = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    let number = rest.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
    number.unwrap_or_else(|| panic!("no number of {what}"))
}

/// How many KiB the kernel's memory grows by when `body` runs `times` times. Waits for delayed
/// frees until less than `few` is left. Takes the minimum of three rounds: others allocate too, but
/// a leak shows in every round.
pub fn kernel_memory_lost(times: usize, few: u64, body: impl Fn()) -> u64 {
    let round = || {
        let before = kernel_memory();
        (0..times).for_each(|_| body());
        let grown = || kernel_memory().saturating_sub(before);
        let _ = crate::raw::wait_for(Duration::from_secs(10), || grown() < few);
        grown()
    };
    body();
    let mut least = u64::MAX;
    for _ in 0..3 {
        least = least.min(round());
        if least < few {
            break;
        }
    }
    least
}

/// How many vmalloc areas that this kernel function allocated still exist.
pub fn areas_of(function: &str) -> usize {
    let all = std::fs::read_to_string("/proc/vmallocinfo").expect("the kernel's areas");
    all.lines().filter(|line| line.contains(function)).count()
}

/// How many of these areas have this many bytes.
pub fn areas_of_size(function: &str, bytes: u64) -> usize {
    let all = std::fs::read_to_string("/proc/vmallocinfo").expect("the kernel's areas");
    // The listed size includes a guard page.
    let size = (bytes + crate::raw::page_size() as u64).to_string();
    let of_size = |line: &&str| line.split_whitespace().nth(1) == Some(&size);
    all.lines().filter(of_size).filter(|line| line.contains(function)).count()
}

/// A socket connected to itself.
#[derive(Debug)]
pub struct Loopback(UdpSocket);

impl Loopback {
    /// Creates the socket and brings the interface up. The interface stays up.
    pub fn up() -> Loopback {
        set_interface("lo", true).expect("the interface is set up");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(socket.local_addr().expect("its address")).expect("connected to itself");
        Loopback(socket)
    }

    /// Sends a datagram and waits for it to come back.
    pub fn turn(&self) {
        assert_eq!(self.0.send(b"there").expect("sent"), 5);
        let mut back = [0; 8];
        assert_eq!(self.0.recv(&mut back).expect("received"), 5);
        assert_eq!(&back[..5], b"there");
    }
}

/// Opens a device for reading and writing.
pub(super) fn read_write(path: &str) -> Result<File> {
    Ok(File::options().read(true).write(true).open(path)?)
}

/// Issues an ioctl.
///
/// # Safety
///
/// The caller must ensure that the argument is what the request reads or writes, for as long as the
/// kernel uses it.
pub(super) unsafe fn ioctl<T>(
    fd: &impl AsRawFd,
    number: libc::Ioctl,
    argument: *mut T,
) -> Result<()> {
    // SAFETY: the caller ensures that the argument is what the request takes.
    Errno::check(unsafe { libc::ioctl(fd.as_raw_fd(), number, argument) }).map(drop)
}

/// Brings a network interface up or down.
pub(super) fn set_interface(name: &str, up: bool) -> Result<()> {
    let any = UdpSocket::bind("0.0.0.0:0")?;
    let mut request = interface(name, if up { libc::IFF_UP } else { 0 });
    // SAFETY: the kernel only reads the structure, which has the expected size.
    unsafe { ioctl(&any, libc::SIOCSIFFLAGS as _, &raw mut request) }
}

/// A request about the network interface with this name, with flags.
pub(super) fn interface(name: &str, flags: libc::c_int) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid `ifreq`: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = letter as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    request
}

/// Passes an address to bind(2) or connect(2).
pub(super) fn with_address<T>(
    call: unsafe extern "C" fn(RawFd, *const libc::sockaddr, libc::socklen_t) -> libc::c_int,
    socket: &impl AsRawFd,
    address: &T,
) -> Result<()> {
    let size = libc::socklen_t::try_from(size_of::<T>()).expect("a size");
    // SAFETY: the callers pass one of these calls, which reads an address of the size that it gets.
    let returned = unsafe { call(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), size) };
    Errno::check(returned).map(drop)
}
