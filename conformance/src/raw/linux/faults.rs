//! Allocations that fail on request, in the calling thread only.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const SLAB: &str = "/sys/kernel/debug/failslab";
const PAGES: &str = "/sys/kernel/debug/fail_page_alloc";
const LOST: &str = "/sys/kernel/debug/kmemleak";

/// The calling thread's switch.
#[derive(Debug)]
pub struct Faults {
    nth: File,
}

impl Faults {
    /// Whether the kernel has all that is needed.
    #[must_use]
    pub fn present() -> bool {
        let nth = "/proc/thread-self/fail-nth";
        [nth, SLAB, PAGES, LOST].iter().all(|file| Path::new(file).exists())
    }

    /// Readies the kernel: allocations that may sleep fail too, and nothing is logged about it.
    ///
    /// # Panics
    ///
    /// If the kernel has no such settings.
    #[must_use]
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

    /// Calls `body` with its allocation number `nth`, from 1, failing. Returns what it returned,
    /// and whether it came to that allocation.
    ///
    /// # Panics
    ///
    /// If the kernel does not take the number.
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

    /// What the kernel has lost since [`forget_lost`](Self::forget_lost), in its own words. An
    /// allocation has to be five seconds old to be looked for.
    ///
    /// # Panics
    ///
    /// If the kernel cannot say.
    #[must_use]
    pub fn lost() -> String {
        for _ in 0..2 {
            fs::write(LOST, "scan").expect("a scan");
        }
        fs::read_to_string(LOST).expect("what was found")
    }

    /// Forgets what was lost until now.
    ///
    /// # Panics
    ///
    /// If the kernel does not take the word.
    pub fn forget_lost() {
        let _ = Faults::lost();
        fs::write(LOST, "clear").expect("forgotten");
    }
}
