//! The kernel's symbols.

use crate::errno::{Errno, Result};
use std::ops::Range;

/// Code symbols of the kernel, in order of address, at the addresses that it was linked for.
#[derive(Debug)]
pub struct Symbols(Vec<(u64, String)>, u64);

/// The symbols of a kernel that shows them.
///
/// # Panics
///
/// If it does not.
#[must_use]
pub fn symbols() -> Symbols {
    Symbols::read().expect("/proc/kallsyms").expect("the kernel shows where it was linked")
}

impl Symbols {
    /// Reads `/proc/kallsyms`. `None` if that shows no addresses, or if it cannot be said how far
    /// from its place the kernel was loaded.
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

/// How far a kernel that starts there is from where it was linked, if that can be known.
fn moved(start: u64, machine: &str) -> Option<u64> {
    /// Where every kernel for x86_64 is linked, and the least address that it is moved to.
    const X86_64: u64 = 0xffff_ffff_8100_0000;
    match start {
        // What is hidden is shown as zero.
        0 => None,
        // A program of another kernel: nothing moves it.
        _ if start >> 63 == 0 => Some(0),
        // A 32-bit program may be told of another machine.
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
    /// The kernel's code.
    #[must_use]
    pub fn text(&self) -> Range<u64> {
        self.address("_stext")..self.address("_etext")
    }

    /// How far the kernel was loaded from where it was linked, in bytes.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.1
    }

    /// Whether a symbol of that name exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|symbol| symbol.1 == name)
    }

    /// Whether one of the records is in the function of that name, which must exist.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[must_use]
    pub fn any_in(&self, name: &str, records: &[u64]) -> bool {
        assert!(self.has(name), "no symbol {name}");
        records.iter().any(|&record| self.names(record).contains(&name))
    }

    /// The names of the code that a return address belongs to: those of the last symbol at or
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
