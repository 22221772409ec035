//! Where the target's kernel calls functions that the target names: a file for
//! the program, made from the kernel's own.

use super::{Ready, Session};
use crate::cache;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::image::GuestFile;
use crate::target::Calls;
use kcov_vm_calls::Code;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Where the program finds it, in a directory that all guests have.
const PATH: &str = "/bin/kcov-vm.calls";

/// What tells the program so.
pub const VARIABLE: &str = "KCOV_VM_CALLS";

/// The name of calls of which the kernel's file does not say what they call.
const POINTERS: &str = "*";

/// Raised whenever the same kernel gives another text.
const RECIPE: u32 = 1;

impl Session {
    /// The file, if the target asks for it. There may be none for a kernel that
    /// the user gives: that one may have no symbols.
    pub fn calls(&self, ready: &Ready<'_>) -> Result<Option<GuestFile>> {
        let machine = &ready.machine;
        let Some(Calls { of, .. }) = &machine.target.calls else { return Ok(None) };
        let given = ready.expect.build.is_none();
        let beside = machine.kernel.with_file_name("vmlinux");
        let cached = machine.kernel.starts_with(self.cache.kernels());
        let file = if beside.is_file() { &beside } else { &machine.kernel };
        let key = hash::bytes(format!("{RECIPE} {of}").as_bytes());
        let kept = file.with_file_name(format!("calls-{}", &key[..12]));
        if let Some(content) = fs::read(&kept).ok().filter(|_| cached) {
            return Ok(Some(guest_file(content)));
        }
        match text(file, of) {
            Ok(text) => {
                if cached {
                    cache::keep(&kept, &text).or_unavailable(Phase::Kernel, kept.display())?;
                }
                Ok(Some(guest_file(text.into_bytes())))
            }
            Err(_) if given => Ok(None),
            Err(why) => {
                Err(Error::unavailable(Phase::Kernel, format!("{}: {why}", file.display())))
            }
        }
    }
}

fn guest_file(content: Vec<u8>) -> GuestFile {
    GuestFile { path: PATH.into(), mode: 0o444, content }
}

fn text(file: &Path, of: &str) -> std::result::Result<String, String> {
    let code = Code::read(&fs::read(file).map_err(|error| error.to_string())?)?;
    let begins = of.strip_suffix('*');
    let mut text = String::new();
    for name in code.names(|name| begins.map_or(name == of, |begin| name.starts_with(begin))) {
        line(&mut text, name, &code.return_addresses(name).unwrap_or_default());
    }
    if text.is_empty() {
        return Err(format!("nothing calls {of}"));
    }
    line(&mut text, POINTERS, &code.through_pointers());
    Ok(text)
}

/// The name and the addresses, each as its distance from the one before.
fn line(text: &mut String, name: &str, addresses: &BTreeSet<u64>) {
    if addresses.is_empty() {
        return;
    }
    text.push_str(name);
    let mut last = 0;
    for address in addresses {
        write!(text, " {:x}", address - last).expect(crate::error::WRITING);
        last = *address;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_distances() {
        let mut text = String::new();
        line(&mut text, "called", &BTreeSet::from([0xffff_ffff_8100_0010, 0xffff_ffff_8100_0000]));
        line(&mut text, "never", &BTreeSet::new());
        assert_eq!(text, "called ffffffff81000000 10\n");
    }

    #[test]
    fn a_file_without_such_calls_has_no_text() {
        let own = std::env::current_exe().expect("this program");
        assert!(text(&own, "no_such_function*").is_err_and(|why| why.contains("nothing calls")));
        assert!(text(Path::new("/dev/null"), "main").is_err());
    }
}
