//! What several checks need beside the device.

use crate::errno::{Errno, Result};
use kcov_sys::linux::{KCOV_REMOTE_MAX_HANDLES, KCOV_TRACE_PC, kcov_remote_arg};
use std::time::Duration;

/// The argument of `KCOV_REMOTE_ENABLE`, to be filled in piece by piece.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The mode.
    pub mode: u32,
    /// Words of the buffer of each section.
    pub area: u32,
    /// The common handle.
    pub common: u64,
    /// The array of handles.
    pub handles: Vec<u64>,
}

impl Default for Remote {
    /// No handles, which the kernel accepts. The area is never 0: a kernel that is told to
    /// allocate nothing complains as soon as a section starts.
    fn default() -> Remote {
        Remote { mode: KCOV_TRACE_PC, area: 4096, common: 0, handles: Vec::new() }
    }
}

impl Remote {
    /// With one handle in the array.
    #[must_use]
    pub fn of(handle: u64) -> Remote {
        Remote { handles: vec![handle], ..Remote::default() }
    }

    /// With a common handle.
    #[must_use]
    pub fn common(handle: u64) -> Remote {
        Remote { common: handle, ..Remote::default() }
    }

    /// The structure for the kernel. It always has room for as many handles as are allowed, and
    /// says how many were asked for, also if those are too many.
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

/// Runs `body` while the kernel keeps its messages from the console; its log still gets them.
pub fn with_console_off<T>(body: impl FnOnce() -> T) -> T {
    const OFF: i32 = 6;
    const ON: i32 = 7;
    let console = |action| {
        // SAFETY: these actions use no buffer.
        let returned = unsafe { libc::klogctl(action, std::ptr::null_mut(), 0) };
        assert_eq!(returned, 0, "klogctl");
    };
    console(OFF);
    let value = body();
    // Consoles may have a thread that writes to them, and asks only then what is wanted.
    std::thread::sleep(Duration::from_millis(20));
    console(ON);
    value
}

/// Whether this process has a thread whose name begins like that, and it sleeps.
#[must_use]
pub fn sleeping_thread(name: &str) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").expect("the threads");
    threads.flatten().any(|thread| {
        // A thread may end meanwhile.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { return false };
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
        stat.contains(&format!("({name}")) && state == Some(b'S')
    })
}

/// Bytes of the kernel's memory of the kind that buffers are made of.
#[must_use]
pub fn vmalloc_used() -> u64 {
    memory("VmallocUsed") * 1024
}

/// The kernel's messages since it booted, as far as its buffer keeps them.
pub fn kernel_log() -> Result<String> {
    const SYSLOG_ACTION_READ_ALL: libc::c_int = 3;
    let mut log = vec![0_u8; 1 << 20];
    let size = libc::c_int::try_from(log.len()).expect("a small buffer");
    // SAFETY: the kernel writes at most `size` bytes to the buffer, which has them.
    let read = unsafe { libc::klogctl(SYSLOG_ACTION_READ_ALL, log.as_mut_ptr().cast(), size) };
    let read = usize::try_from(Errno::check(read)?).expect("a length");
    Ok(String::from_utf8_lossy(&log[..read]).into_owned())
}

/// Free memory, in bytes.
#[must_use]
pub fn free_memory() -> u64 {
    memory("MemFree") * 1024
}

/// The kernel's unreclaimable slab memory, in KiB.
fn kernel_memory() -> u64 {
    memory("SUnreclaim")
}

/// A field of `/proc/meminfo`, in KiB.
fn memory(what: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
    let rest = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    let number = rest.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
    number.unwrap_or_else(|| panic!("no number of {what}"))
}

/// By how many KiB the kernel's memory grows when `body` is called `times` times. Memory that is freed
/// late is waited for until less than `few` is left. The least of three rounds counts: others allocate
/// too, but a leak shows in each.
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

/// How many areas of the kernel's memory this function of its has made that are still there.
#[must_use]
pub fn areas_of(function: &str) -> usize {
    let all = std::fs::read_to_string("/proc/vmallocinfo").expect("the kernel's areas");
    all.lines().filter(|line| line.contains(function)).count()
}

/// How many of them have that many bytes.
#[must_use]
pub fn areas_of_size(function: &str, bytes: u64) -> usize {
    let all = std::fs::read_to_string("/proc/vmallocinfo").expect("the kernel's areas");
    // Each has a page more, which is never there.
    let size = (bytes + crate::raw::page_size() as u64).to_string();
    let of_size = |line: &&str| line.split_whitespace().nth(1) == Some(&size);
    all.lines().filter(of_size).filter(|line| line.contains(function)).count()
}
