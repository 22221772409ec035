//! The kernel's symbols.

use crate::errno::Result;
use std::ops::Range;

/// The kernel's code symbols, sorted by the addresses it was linked at.
#[derive(Debug)]
pub struct Symbols(Vec<(u64, String)>, u64);

/// Returns the kernel's symbols.
pub fn symbols() -> Symbols {
    Symbols::read().expect("/proc/kallsyms").expect("the kernel shows where it was linked")
}

impl Symbols {
    /// Reads `/proc/kallsyms`. Returns `None` if it shows no addresses, or if the offset between
    /// the load address and the link address is unknown.
    pub fn read() -> Result<Option<Symbols>> {
        let text = match std::fs::read_to_string("/proc/kallsyms") {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut symbols: Vec<_> = text.lines().filter_map(code_symbol).collect();
        let names = nix::sys::utsname::uname()?;
        let loaded =
            |name: &str| symbols.iter().find(|symbol| symbol.1 == name).map(|symbol| symbol.0);
        let Some(moved) = names.machine().to_str().and_then(|machine| moved(machine, loaded))
        else {
            return Ok(None);
        };
        for symbol in &mut symbols {
            symbol.0 = symbol.0.wrapping_sub(moved);
        }
        symbols.sort();
        Ok(Some(Symbols(symbols, moved)))
    }
}

/// For each machine of uname(2): a symbol and its link address, which is the same in every kernel.
const LINKED: &[(&str, &str, u64)] = &[
    ("x86_64", "_text", 0xffff_ffff_8100_0000),
    // A 32-bit program may see this name.
    ("i686", "_text", 0xffff_ffff_8100_0000),
    // `PAGE_OFFSET` and `TEXT_OFFSET`.
    ("armv7l", "_text", 0xc000_8000),
    // `KIMAGE_VADDR` if virtual addresses have at least 48 bits.
    ("aarch64", "_text", 0xffff_8000_8000_0000),
    // `KERNEL_LINK_ADDR`.
    ("riscv64", "_start", 0xffff_ffff_8000_0000),
    // `VMLINUX_LOAD_ADDRESS`.
    ("loongarch64", "_text", 0x9000_0000_0020_0000),
    // `TEXT_OFFSET`. The kernel relocates itself at boot, even without KASLR.
    ("s390x", "_text", 0x10_0000),
    // `KERNELBASE`.
    ("ppc64", "_text", 0xc000_0000_0000_0000),
    ("ppc64le", "_text", 0xc000_0000_0000_0000),
];

/// The offset from the link address to the load address, if known. `loaded` looks up a symbol's load
/// address.
fn moved(machine: &str, loaded: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let (_, symbol, linked) = LINKED.iter().find(|row| row.0 == machine)?;
    match loaded(symbol)? {
        // Hidden addresses read as zero.
        0 => None,
        // User-Mode Linux is a program of another kernel, and is not moved.
        start if linked >> 63 == 1 && start >> 63 == 0 => Some(0),
        start => start.checked_sub(*linked),
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

impl Symbols {
    /// The address range of the kernel's code.
    pub fn text(&self) -> Range<u64> {
        self.address("_stext")..self.address("_etext")
    }

    /// The distance in bytes from the link address to the load address.
    pub fn moved(&self) -> u64 {
        self.1
    }

    /// Whether a symbol with this name exists.
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

#[cfg(test)]
mod tests {
    use super::moved;

    #[test]
    fn where_a_kernel_was_linked() {
        let of =
            |machine, name, address| moved(machine, |symbol| (symbol == name).then_some(address));
        assert_eq!(of("x86_64", "_text", 0xffff_ffff_8100_0000), Some(0));
        assert_eq!(of("i686", "_text", 0xffff_ffff_9e20_0000), Some(0x1d20_0000));
        assert_eq!(of("x86_64", "_text", 0x6000_1000), Some(0));
        assert_eq!(of("aarch64", "_text", 0xffff_8000_8001_0000), Some(0x1_0000));
        assert_eq!(of("riscv64", "_start", 0xffff_ffff_a000_0000), Some(0x2000_0000));
        assert_eq!(of("s390x", "_text", 0x3ff_e010_0000), Some(0x3ff_e000_0000));
        assert_eq!(of("x86_64", "_text", 0xffff_ffff_8000_0000), None);
        assert_eq!(of("x86_64", "_text", 0), None);
        assert_eq!(of("x86_64", "_start", 0xffff_ffff_8100_0000), None);
        assert_eq!(of("mips", "_text", 0xffff_ffff_8010_0000), None);
    }
}
