//! Where the kernel calls the coverage hooks: a list that its launcher extracts from its file.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;

/// The environment variable with the path of the list.
const VARIABLE: &str = "KCOV_VM_CALLS";

/// The prefix of the compiler's hooks.
pub(crate) const HOOK: &str = "__sanitizer_cov_trace_";

/// The entry for calls through a pointer, with an unknown callee.
const POINTERS: &str = "*";

/// Maps each called function to the return addresses of its calls, as the kernel was linked.
pub struct Sites(pub(crate) HashMap<String, HashSet<u64>>);

pub fn sites() -> Sites {
    Sites::given().expect("a list of calls")
}

impl Sites {
    /// Returns the list if one was given and it names a hook.
    pub fn given() -> Option<Sites> {
        let file = std::env::var_os(VARIABLE)?;
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            text => text.expect("the list of calls can be read"),
        };
        let sites = Sites(text.lines().map(line).collect());
        sites.0.keys().any(|name| name.starts_with(HOOK)).then_some(sites)
    }

    /// Possible values of program counter records. A function that ends with a jump to the hook may
    /// have been called through a pointer.
    pub fn blocks(&self) -> HashSet<u64> {
        let pointers = self.0.get(POINTERS).into_iter().flatten();
        let own = self.of(|name| name.starts_with("pc") && !name.contains('@'));
        own.into_iter().chain(pointers.copied()).collect()
    }

    /// Possible sites of comparison records of this size, with or without a constant operand.
    pub fn comparisons(&self, bytes: u64, constant: bool) -> HashSet<u64> {
        let cmp = format!("{}cmp{bytes}", if constant { "const_" } else { "" });
        self.of(|name| name == cmp || (constant && name == "switch"))
    }

    fn of(&self, wanted: impl Fn(&str) -> bool) -> HashSet<u64> {
        let wanted = |name: &String| name.strip_prefix(HOOK).is_some_and(&wanted);
        let chosen = self.0.iter().filter(|(name, _)| wanted(name));
        chosen.flat_map(|(_, addresses)| addresses).copied().collect()
    }
}

/// Parses a name and addresses, each given as the distance from the one before.
fn line(line: &str) -> (String, HashSet<u64>) {
    let mut fields = line.split(' ');
    let name = fields.next().expect("a name").to_owned();
    let mut address = 0_u64;
    let add = |distance: &str| {
        address += u64::from_str_radix(distance, 16).expect("a distance");
        address
    };
    (name, fields.map(add).collect())
}

#[cfg(test)]
mod tests {
    use super::{Sites, line};

    #[test]
    fn a_line_has_distances() {
        let (name, addresses) = line("called ffffffff81000000 10 1");
        assert_eq!(name, "called");
        assert_eq!(
            addresses,
            [0xffff_ffff_8100_0000, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0011].into()
        );
    }

    #[test]
    fn each_comparison_has_its_hooks() {
        let lines = ["const_cmp4 10", "cmp4 20", "switch 30", "pc 40", "pc_guard 50"];
        let lines = lines.map(|hook| format!("__sanitizer_cov_trace_{hook}"));
        let sites = Sites(lines.iter().map(|text| line(text)).chain([line("* 60")]).collect());
        assert_eq!(sites.comparisons(4, true), [0x10, 0x30].into());
        assert_eq!(sites.comparisons(4, false), [0x20].into());
        assert_eq!(sites.comparisons(8, false), [].into());
        assert_eq!(sites.blocks(), [0x40, 0x50, 0x60].into());
    }
}
