//! The kernel's symbols.

use crate::errno::{Errno, Result};
use std::ops::Range;

/// The kernel's code symbols, sorted by the addresses it was linked at.
#[derive(Debug)]
pub struct Symbols(Vec<(u64, String)>, u64);

/// Returns the kernel's symbols.
///
/// # Panics
///
/// If the kernel does not show them.
#[must_use]
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
            Err(error) => return Err(Errno(error.raw_os_error().unwrap_or(libc::EIO))),
        };
        let mut symbols: Vec<_> = text.lines().filter_map(code_symbol).collect();
        let machine = nix::sys::utsname::uname()?;
        let start = symbols.iter().find(|symbol| symbol.1 == "_text").map(|symbol| symbol.0);
        let Some(moved) = start.and_then(|start| moved(start, machine.machine().to_str()?)) else {
            return Ok(None);
        };
        for symbol in &mut symbols {
            symbol.0 = symbol.0.wrapping_sub(moved);
        }
        symbols.sort();
        Ok(Some(Symbols(symbols, moved)))
    }
}

/// How far the kernel was moved from its link address, if known. `start` is its load address.
fn moved(start: u64, machine: &str) -> Option<u64> {
    /// The link address of every x86_64 kernel, and the lowest address it can be loaded at.
    const X86_64: u64 = 0xffff_ffff_8100_0000;
    match start {
        // Hidden addresses read as zero.
        0 => None,
        // User-Mode Linux is a program of another kernel, and is not moved.
        _ if start >> 63 == 0 => Some(0),
        // A 32-bit program may see a different machine name.
        X86_64.. if matches!(machine, "x86_64" | "i686") => Some(start - X86_64),
        _ => None,
    }
}

fn code_symbol(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let kind = fields.next()?;
    let name = fields.next()?;
    matches!(kind, "t" | "T" | "w" | "W").then(|| (address, name.to_owned()))
}

impl Symbols {
    /// The address range of the kernel's code.
    #[must_use]
    pub fn text(&self) -> Range<u64> {
        self.address("_stext")..self.address("_etext")
    }

    /// The distance in bytes from the link address to the load address.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.1
    }

    /// Whether a symbol with this name exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|symbol| symbol.1 == name)
    }

    /// Whether one of the records is in the function with this name.
    ///
    /// # Panics
    ///
    /// If there is no such symbol.
    #[must_use]
    pub fn any_in(&self, name: &str, records: &[u64]) -> bool {
        assert!(self.has(name), "no symbol {name}");
        records.iter().any(|&record| self.names(record).contains(&name))
    }

    /// The names of the function that a return address belongs to: those of the last symbol at or
    /// below the call.
    #[must_use]
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
        assert_eq!(moved(0xffff_ffff_8100_0000, "x86_64"), Some(0));
        assert_eq!(moved(0xffff_ffff_9e20_0000, "i686"), Some(0x1d20_0000));
        assert_eq!(moved(0x6000_1000, "x86_64"), Some(0));
        assert_eq!(moved(0xffff_8000_8001_0000, "aarch64"), None);
        assert_eq!(moved(0xffff_ffff_8100_0000, "riscv64"), None);
        assert_eq!(moved(0, "x86_64"), None);
    }
}
