//! Helpers that several checks need besides the device.

use super::*;
use kcov_sys::linux::{KCOV_REMOTE_MAX_HANDLES, KCOV_TRACE_PC, kcov_remote_arg};
use std::net::UdpSocket;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// The argument of `KCOV_REMOTE_ENABLE`, built up field by field.
#[derive(Clone, Debug)]
pub struct Remote {
    pub mode: u32,
    /// The buffer size of each section in words.
    pub area: u32,
    pub common: u64,
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
    pub fn of(handle: u64) -> Remote {
        Remote::of_all([handle])
    }

    pub fn common(handle: u64) -> Remote {
        Remote { common: handle, ..Remote::default() }
    }

    pub fn in_mode(mode: u32) -> Remote {
        Remote { mode, ..Remote::default() }
    }

    pub fn of_all(handles: impl IntoIterator<Item = u64>) -> Remote {
        Remote { handles: handles.into_iter().collect(), ..Remote::default() }
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

pub fn free_memory() -> u64 {
    memory("MemFree") * 1024
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
        // The kernel's unreclaimable slab memory.
        let before = memory("SUnreclaim");
        (0..times).for_each(|_| body());
        let grown = || memory("SUnreclaim").saturating_sub(before);
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
    areas(function, |_| true)
}

/// How many of these areas have this many bytes.
pub fn areas_of_size(function: &str, bytes: u64) -> usize {
    // The listed size includes a guard page.
    let size = (bytes + page_size() as u64).to_string();
    areas(function, |line| line.split_whitespace().nth(1) == Some(&size))
}

fn areas(function: &str, wanted: impl Fn(&str) -> bool) -> usize {
    let all = fs::read_to_string("/proc/vmallocinfo").expect("the kernel's areas");
    all.lines().filter(|line| line.contains(function) && wanted(line)).count()
}

/// A socket connected to itself.
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

const SLAB: &str = "/sys/kernel/debug/failslab";
const PAGES: &str = "/sys/kernel/debug/fail_page_alloc";
const LOST: &str = "/sys/kernel/debug/kmemleak";

pub struct Faults {
    nth: File,
}

impl Faults {
    /// Whether the kernel has all the files that this needs.
    pub fn present() -> bool {
        let nth = "/proc/thread-self/fail-nth";
        [nth, SLAB, PAGES, LOST].iter().all(|file| Path::new(file).exists())
    }

    /// Configures fault injection: allocations that may sleep fail too, and nothing is logged.
    pub fn ready() -> Faults {
        for directory in [SLAB, PAGES] {
            for (setting, value) in [("ignore-gfp-wait", "N"), ("verbose", "0")] {
                fs::write(Path::new(directory).join(setting), value).expect("a setting");
            }
        }
        for (setting, value) in [("ignore-gfp-highmem", "N"), ("min-order", "0")] {
            fs::write(Path::new(PAGES).join(setting), value).expect("a setting");
        }
        let nth = OpenOptions::new().read(true).write(true).open("/proc/thread-self/fail-nth");
        Faults { nth: nth.expect("the thread's switch") }
    }

    /// Calls `body` with its allocation number `nth`, counted from 1, failing. Returns the result
    /// of `body` and whether it reached that allocation.
    pub fn at<T>(&mut self, nth: u32, body: impl FnOnce() -> T) -> (T, bool) {
        self.set(nth);
        let result = body();
        let mut left = [0; 16];
        let read = self.nth.read_at(&mut left, 0).expect("the number that is left");
        self.set(0);
        (result, left[..read].trim_ascii() == b"0")
    }

    fn set(&mut self, nth: u32) {
        self.nth.write_all_at(nth.to_string().as_bytes(), 0).expect("the number is taken");
    }

    /// Returns kmemleak's report of leaks since [`forget_lost`](Self::forget_lost). kmemleak only
    /// reports allocations that are at least five seconds old.
    pub fn lost() -> String {
        for _ in 0..2 {
            fs::write(LOST, "scan").expect("a scan");
        }
        fs::read_to_string(LOST).expect("what was found")
    }

    /// Clears the leaks found so far.
    pub fn forget_lost() {
        let _ = Faults::lost();
        fs::write(LOST, "clear").expect("forgotten");
    }
}
