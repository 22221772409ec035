//! The kernel's symbols.

use std::ops::Range;

/// Code symbols of the kernel, in order of address.
#[derive(Debug)]
pub struct Symbols(Vec<(u64, String)>);

/// Reads `/proc/kallsyms`.
#[must_use]
pub fn symbols() -> Symbols {
    let text = std::fs::read_to_string("/proc/kallsyms").expect("/proc/kallsyms can be read");
    let mut symbols: Vec<_> = text.lines().filter_map(code_symbol).collect();
    assert!(symbols.iter().any(|symbol| symbol.0 != 0), "/proc/kallsyms shows addresses");
    symbols.sort();
    Symbols(symbols)
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

    /// Whether a symbol of that name exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|symbol| symbol.1 == name)
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
