//! A kernel module with a device of its own: autofs.

use super::symbols;
use crate::errno::{Errno, Result};
use crate::raw::sites::{HOOK, sites};
use nix::kmod::{ModuleInitFlags, finit_module};
use std::collections::HashSet;
use std::fs::{File, read_to_string};
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// The runner carries the module to this path.
const FILE: &str = "/lib/modules/autofs4.ko";
/// `AUTOFS_DEV_IOCTL_VERSION` of `<linux/auto_dev-ioctl.h>`: `_IOWR(0x93, 0x71, ...)`, 24 bytes.
const VERSION: u64 = 0xc018_9371;

/// The loaded module.
#[derive(Debug)]
pub struct Module(File);

impl Module {
    /// Whether the module's file exists.
    pub fn is_there() -> bool {
        Path::new(FILE).exists()
    }

    /// Loads the module unless it is already loaded, and opens its device.
    pub fn load() -> Result<Module> {
        match finit_module(File::open(FILE)?, c"", ModuleInitFlags::empty()) {
            Ok(()) | Err(nix::errno::Errno::EEXIST) => Ok(Module(File::open("/dev/autofs")?)),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The returns from the module's calls of the hook for program counters, as offsets.
    pub fn blocks() -> HashSet<u64> {
        let calls = format!("{HOOK}pc@autofs4/.text");
        sites().0.get(&calls).cloned().unwrap_or_default()
    }

    /// The start of the module's code, adjusted like a record for where the kernel was loaded.
    pub fn text(&self) -> u64 {
        let text = read_to_string("/sys/module/autofs4/sections/.text").expect("its section");
        let text = text.trim().trim_start_matches("0x");
        let text = u64::from_str_radix(text, 16).expect("an address");
        text.wrapping_sub(symbols().moved())
    }

    /// Runs code of the module by asking it for its version.
    pub fn call(&self) {
        // The requested version, the size, a file descriptor, and room for the answer.
        let mut asked = [1_u32, 1, 24, u32::MAX, 0, 0];
        // SAFETY: the request reads and writes exactly the 24 bytes that the size states.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), VERSION as _, asked.as_mut_ptr()) };
        assert_eq!(Errno::check(returned), Ok(0));
    }
}
