//! The file that tells the guest's program where the kernel calls the functions that the target
//! names, and the target's modules.

use super::{Ready, Session, Task};
use crate::arch::Arch;
use crate::cache;
use crate::carry::Access;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::guest::Machine;
use crate::hash;
use crate::kernel::RELOCATED;
use crate::target::Calls;
use kcov_vm_calls::{Code, relocated_calls};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of the file in the guest. Every guest has its directory.
pub const PATH: &str = "/bin/kcov-vm.calls";

/// Where the modules are in the guest.
const MODULES: &str = "/lib/modules";

/// The variable that holds this path.
pub const VARIABLE: &str = "KCOV_VM_CALLS";

/// Stands for calls through pointers, because their callee is unknown.
const POINTERS: &str = "*";

/// Raise it whenever the text changes for the same kernel.
const RECIPE: u32 = 5;

impl Task {
    /// Adds the list of calls and the modules, if there are any.
    #[must_use]
    pub fn knowing(mut self, calls: Vec<(String, Vec<u8>)>) -> Self {
        if !calls.is_empty() {
            self.environment.push((VARIABLE.into(), PATH.into()));
        }
        for (path, content) in calls {
            self.carried.file(Path::new(&path), Access::root(0o444), content.into());
        }
        self
    }
}

impl Session {
    /// Returns the file and the modules with their paths, if the target asks for them. A user's kernel
    /// may have no symbols, and its relocations may not show all calls; then there are none.
    pub fn calls(&self, ready: &Ready<'_>) -> Result<Vec<(String, Vec<u8>)>> {
        let machine = &ready.machine;
        let Some(Calls { of, .. }) = &machine.target.calls else { return Ok(Vec::new()) };
        let (given, arch) = (ready.expect.build.is_none(), machine.target.arch);
        if given && arch.keeps_relocations() {
            return Ok(Vec::new());
        }
        let beside = machine.kernel.with_file_name("vmlinux");
        // In the cache, a kernel has a directory of its own.
        let cached = [self.cache.at("kernels"), self.cache.at("runs")]
            .iter()
            .any(|directory| machine.kernel.starts_with(directory));
        let file = if beside.is_file() { &beside } else { &machine.kernel };
        let key = hash::bytes(format!("{RECIPE} {of}").as_bytes());
        let kept = file.with_file_name(format!("calls-{}", &key[..12]));
        let modules = match modules(machine) {
            Err(_) if given => Vec::new(),
            found => found?,
        };
        let list = match fs::read(&kept).ok().filter(|_| cached) {
            Some(list) => list,
            None => match text(file, arch, of, &modules) {
                Ok(text) => {
                    if cached {
                        cache::keep(&kept, &text).or_unavailable(Phase::Kernel, kept.display())?;
                    }
                    text.into_bytes()
                }
                Err(_) if given => return Ok(Vec::new()),
                Err(why) => {
                    let why = format!("{}: {why}", file.display());
                    return Err(Error::unavailable(Phase::Kernel, why));
                }
            },
        };
        Ok(modules.into_iter().chain([(PATH.into(), list)]).collect())
    }
}

/// The modules that were built with the kernel.
fn modules(machine: &Machine<'_>) -> Result<Vec<(String, Vec<u8>)>> {
    let read = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let file = machine.kernel.with_file_name(name);
        let content = fs::read(&file).or_unavailable(Phase::Kernel, file.display())?;
        Ok((format!("{MODULES}/{name}"), content))
    };
    machine.target.modules.iter().map(read).collect()
}

/// Writes a line for each function of the kernel, and a line `function@module/section` for each
/// function that a section of a module calls.
fn text(
    file: &Path,
    arch: &Arch,
    of: &str,
    modules: &[(String, Vec<u8>)],
) -> std::result::Result<String, String> {
    let read = |file: &Path| fs::read(file).map_err(|error| error.to_string());
    let wanted =
        |name: &str| of.strip_suffix('*').map_or(name == of, |start| name.starts_with(start));
    let mut text = String::new();
    for (path, content) in modules {
        let calls =
            relocated_calls(content, arch.calls, wanted).map_err(|why| format!("{path}: {why}"))?;
        let name = path.trim_start_matches(MODULES).trim_matches('/').trim_end_matches(".ko");
        for ((section, function), addresses) in calls {
            line(&mut text, &format!("{function}@{name}/{section}"), &addresses);
        }
    }
    if arch.keeps_relocations() {
        let bytes = read(&file.with_file_name(RELOCATED))
            .map_err(|why| format!("its {RELOCATED}: {why}; leave out the key `calls`"))?;
        let mut all: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for ((_, function), addresses) in relocated_calls(&bytes, arch.calls, wanted)? {
            all.entry(function).or_default().extend(addresses);
        }
        all.iter().for_each(|(function, addresses)| line(&mut text, function, addresses));
    } else {
        let code = Code::read(&read(file)?)?;
        for name in code.names(wanted) {
            line(&mut text, name, &code.return_addresses(name).unwrap_or_default());
        }
        if !text.is_empty() {
            line(&mut text, POINTERS, &code.through_pointers());
        }
    }
    if text.is_empty() { Err(format!("nothing calls {of}")) } else { Ok(text) }
}

/// Adds a line: the name, the first address, then each distance to the next.
fn line(text: &mut String, name: &str, addresses: &BTreeSet<u64>) {
    if addresses.is_empty() {
        return;
    }
    text.push_str(name);
    let mut last = 0;
    for address in addresses {
        *text += &format!(" {:x}", address - last);
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
        let text = |file: &Path, arch: &str, of: &str| {
            text(file, Arch::named(arch).expect("known"), of, &[]).expect_err("no calls")
        };
        assert!(text(&own, "x86_64", "no_such_function*").contains("nothing calls"));
        text(Path::new("/dev/null"), "x86_64", "main");
        assert!(text(&own, "arm64", "main").starts_with("its vmlinux.unstripped: No such file"));
    }
}
