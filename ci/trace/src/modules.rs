//! Code that was loaded into a running kernel.

/// A module's code in the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// What it is called.
    pub name: String,
    /// Where its code begins in the running kernel.
    pub start: u64,
    /// How many bytes it takes, at most.
    pub size: u64,
}

/// The modules of a running kernel, to find an address in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules(Vec<Module>);

impl Modules {
    /// Reads the text of Linux's `/proc/modules`.
    ///
    /// Lines without an address are left out; to a process without privileges all addresses are
    /// shown as 0.
    pub fn parse(text: &str) -> Modules {
        text.lines().filter_map(line).collect()
    }

    /// The module that an address of the running kernel is in, and how far it is from the beginning
    /// of the module's code.
    pub fn find(&self, running: u64) -> Option<(&Module, u64)> {
        let above = self.0.partition_point(|module| module.start <= running);
        // Sizes count data as well, so that they may reach into what follows: the last one that
        // begins below is right.
        let module = &self.0[above.checked_sub(1)?];
        let offset = running - module.start;
        (offset < module.size).then_some((module, offset))
    }

    /// All modules, in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Module> {
        self.0.iter()
    }
}

impl FromIterator<Module> for Modules {
    fn from_iter<I: IntoIterator<Item = Module>>(modules: I) -> Modules {
        let mut all: Vec<_> = modules.into_iter().collect();
        all.sort_by_key(|module| module.start);
        Modules(all)
    }
}

/// Name, size, users, by whom, state, address, and perhaps taints.
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
        // Both claim it.
        assert_eq!(find(0xffff_ffff_c050_8001), Some(("loop", 1)));
        assert_eq!(find(0xffff_ffff_c051_2000), None);
        assert_eq!(find(0xffff_ffff_c04f_ffff), None);
        assert_eq!(find(u64::MAX), None);
        assert_eq!(Modules::default().find(1), None);
    }
}
