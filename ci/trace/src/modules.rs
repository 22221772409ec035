//! Modules that are loaded into a running kernel.

use serde::{Deserialize, Serialize};

/// A module's code in the running kernel.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// The address of its code in the running kernel.
    pub start: u64,
    /// Its maximum size in bytes.
    pub size: u64,
}

/// The modules of a running kernel, searchable by address.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Modules(Vec<Module>);

impl Modules {
    /// Parses Linux's `/proc/modules`.
    ///
    /// Skips lines without an address. A process without privileges sees all addresses as 0.
    pub fn parse(text: &str) -> Modules {
        text.lines().filter_map(line).collect()
    }

    /// Finds the module at an address of the running kernel. Returns it with the offset from the
    /// beginning of its code.
    pub fn find(&self, running: u64) -> Option<(&Module, u64)> {
        let above = self.0.partition_point(|module| module.start <= running);
        // Sizes include data, so they may overlap what follows. The last module that begins below
        // the address is the right one.
        let module = &self.0[above.checked_sub(1)?];
        let offset = running - module.start;
        (offset < module.size).then_some((module, offset))
    }

    /// Whether no module has another address in the other list.
    pub fn agree(&self, other: &Modules) -> bool {
        self.0.iter().all(|module| other.0.iter().all(|it| it.name != module.name || it == module))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All modules, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = &Module> {
        self.0.iter()
    }
}

impl FromIterator<Module> for Modules {
    fn from_iter<I: IntoIterator<Item = Module>>(modules: I) -> Modules {
        let mut all: Vec<_> = modules.into_iter().collect();
        all.sort_by_key(|module| module.start);
        all.dedup();
        Modules(all)
    }
}

/// Parses name, size, use count, users, state, address, and optional taints.
fn line(line: &str) -> Option<Module> {
    let mut words = line.split_ascii_whitespace();
    let name = String::from(words.next()?);
    let size = words.next()?.parse().ok()?;
    let start = u64::from_str_radix(words.nth(3)?.strip_prefix("0x")?, 16).ok()?;
    (start != 0).then_some(Module { name, start, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
tun 61440 2 vhost_net, Live 0xffffffffc0500000\n\
nfs 282624 1 - Live 0xffffffffc0a00000 (OE)\n\
hidden 4096 0 - Live 0x0000000000000000\n\
loop 40960 0 - Live 0xffffffffc0508000\n\
not a line\n";

    #[test]
    fn addresses_are_found_in_the_module_that_begins_last() {
        let modules = Modules::parse(TEXT);
        let names: Vec<_> = modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["tun", "loop", "nfs"]);
        let find = |address| modules.find(address).map(|(module, at)| (module.name.as_str(), at));
        assert_eq!(find(0xffff_ffff_c050_0000), Some(("tun", 0)));
        // Both ranges include this address.
        assert_eq!(find(0xffff_ffff_c050_8001), Some(("loop", 1)));
        assert_eq!(find(0xffff_ffff_c051_2000), None);
        assert_eq!(find(0xffff_ffff_c04f_ffff), None);
        assert_eq!(find(u64::MAX), None);
        assert_eq!(Modules::default().find(1), None);
    }
}
