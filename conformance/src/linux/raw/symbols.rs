//! The kernel's symbols, and a kernel module with a device of its own: autofs.

use super::*;
use kcov_sys::arch::TEXT;
use nix::kmod::{ModuleInitFlags, finit_module};
use std::ops::Range;

/// The kernel's code symbols, sorted by the addresses it was linked at.
pub struct Symbols(Vec<(u64, String)>, u64);

pub fn symbols() -> Symbols {
    Symbols::read().expect("/proc/kallsyms").expect("the kernel shows where it was linked")
}

impl Symbols {
    /// Reads `/proc/kallsyms`. Returns `None` if it shows no addresses, or if the offset between
    /// the load address and the link address is unknown.
    pub fn read() -> Result<Option<Symbols>> {
        let text = match fs::read_to_string("/proc/kallsyms") {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut symbols: Vec<_> = text.lines().filter_map(code_symbol).collect();
        let loaded =
            |name: &str| symbols.iter().find(|symbol| symbol.1 == name).map(|symbol| symbol.0);
        let Some(moved) = TEXT.offset(true, loaded) else { return Ok(None) };
        for symbol in &mut symbols {
            symbol.0 = symbol.0.wrapping_sub(moved);
        }
        symbols.sort();
        Ok(Some(Symbols(symbols, moved)))
    }

    pub fn text(&self) -> Range<u64> {
        self.address("_stext")..self.address("_etext")
    }

    /// The distance in bytes from the link address to the load address.
    pub fn moved(&self) -> u64 {
        self.1
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|symbol| symbol.1 == name)
    }

    /// Whether one of the records is in the function with this name.
    pub fn any_in(&self, name: &str, records: &[u64]) -> bool {
        assert!(self.has(name), "no symbol {name}");
        records.iter().any(|&record| self.names(record).contains(&name))
    }

    /// The names of the function that a return address belongs to: those of the last symbol at or
    /// below the call.
    pub fn names(&self, address: u64) -> Vec<&str> {
        let end = self.0.partition_point(|symbol| symbol.0 < address);
        let Some(start) = end.checked_sub(1).map(|last| self.0[last].0) else {
            return Vec::new();
        };
        let same = self.0[..end].iter().rev().take_while(|symbol| symbol.0 == start);
        same.map(|symbol| symbol.1.as_str()).collect()
    }

    fn address(&self, name: &str) -> u64 {
        let found = self.0.iter().find(|symbol| symbol.1 == name);
        found.unwrap_or_else(|| panic!("no symbol {name}")).0
    }
}

fn code_symbol(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let kind = fields.next()?;
    let name = fields.next()?;
    // arm64 lists `_etext` as data.
    let is_code = matches!(kind, "t" | "T" | "w" | "W") || name == "_etext";
    is_code.then(|| (address, name.to_owned()))
}

/// The runner carries the module to this path.
const FILE: &str = "/lib/modules/autofs4.ko";
/// `AUTOFS_DEV_IOCTL_VERSION` of `<linux/auto_dev-ioctl.h>`: `_IOWR(0x93, 0x71, ...)`, 24 bytes.
const VERSION: u64 = 0xc018_9371;

pub struct Module(File);

impl Module {
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
        let text = fs::read_to_string("/sys/module/autofs4/sections/.text").expect("its section");
        let text = text.trim().trim_start_matches("0x");
        let text = u64::from_str_radix(text, 16).expect("an address");
        text.wrapping_sub(symbols().moved())
    }

    /// Runs code of the module by asking it for its version.
    pub fn call(&self) {
        // The requested version, the size, a file descriptor, and room for the answer.
        let mut asked = [1_u32, 1, 24, u32::MAX, 0, 0];
        // SAFETY: the driver reads and writes as many bytes as `asked` names, 24. `asked` has that size
        // and outlives the call.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), VERSION as _, asked.as_mut_ptr()) };
        assert_eq!(Errno::check(returned), Ok(0));
    }
}
