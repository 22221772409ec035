//! Fault injection: allocations that fail on request, in the calling thread only.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const SLAB: &str = "/sys/kernel/debug/failslab";
const PAGES: &str = "/sys/kernel/debug/fail_page_alloc";
const LOST: &str = "/sys/kernel/debug/kmemleak";

/// The calling thread's `fail-nth` file.
#[derive(Debug)]
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
