//! Where the running kernel's code is.

use crate::error::{Error, ErrorKind, Operation};
use crate::pc::{AddressSpace, Pc};
use crate::sys;
use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// The text of the running kernel: where it is, and how far KASLR has moved it.
///
/// The range is what a bitmap of program counters has to cover, besides modules.
///
/// ```no_run
/// use kcov::KernelText;
///
/// # fn main() -> Result<(), kcov::Error> {
/// let text = KernelText::read()?;
/// println!("records lie in {:x?}", text.recorded());
/// println!("KASLR offset {:#x}", text.kaslr_offset());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelText {
    run_time: Range<u64>,
    kaslr_offset: u64,
}

impl KernelText {
    /// Reads the kernel's symbols.
    ///
    /// # Errors
    ///
    /// - [`PermissionDenied`](ErrorKind::PermissionDenied): all addresses are hidden. It takes
    ///   `CAP_SYSLOG` and `kernel.kptr_restrict` below 2.
    /// - [`Unsupported`](ErrorKind::Unsupported): not Linux; or /proc is not mounted, or the kernel
    ///   was built without `CONFIG_KALLSYMS`; or the offset cannot be found out. It is known of x86 and
    ///   User-Mode Linux, and elsewhere read from /proc/kcore.
    ///
    /// # Platforms
    ///
    /// `/proc/kallsyms` and, where it can be read, `/proc/kcore` on Linux.
    pub fn read() -> Result<KernelText, Error> {
        let symbols = sys::read_symbols()
            .map_err(|errno| Error::from_errno(sys::SYSTEM, Operation::ReadSymbols, errno))?;
        KernelText::from_symbols(&symbols, offset_of_kcore())
    }

    fn from_symbols(symbols: &str, kcore: Option<u64>) -> Result<KernelText, Error> {
        let refuse = |kind| Error::new(Operation::ReadSymbols, kind);
        let hidden = || Error::from_errno(&crate::system::LINUX, Operation::ReadSymbols, 1);
        let find = |name| symbols.lines().find_map(|line| address(line, name));
        let bounds = find("_stext").zip(find("_etext"));
        let (start, end) = bounds.ok_or_else(|| refuse(ErrorKind::Unsupported))?;
        if start == 0 {
            return Err(hidden());
        }
        let offset = kcore.or_else(|| offset_by_rule(find("_text")?));
        let kaslr_offset = offset.ok_or_else(|| refuse(ErrorKind::Unsupported))?;
        Ok(KernelText { run_time: start..end, kaslr_offset })
    }

    /// The range in the running kernel, as in `/proc/kallsyms`.
    #[must_use]
    pub fn run_time(&self) -> Range<u64> {
        self.run_time.clone()
    }

    /// The range in the kernel's file, `vmlinux`.
    #[must_use]
    pub fn link_time(&self) -> Range<u64> {
        let moved = |address| AddressSpace::RunTime.link_time(Pc::new(address), self.kaslr_offset);
        moved(self.run_time.start).address()..moved(self.run_time.end).address()
    }

    /// The range in which this system's kcov records.
    #[must_use]
    pub fn recorded(&self) -> Range<u64> {
        match AddressSpace::HOST {
            AddressSpace::LinkTime => self.link_time(),
            AddressSpace::RunTime => self.run_time(),
        }
    }

    /// Bytes from link-time to run-time addresses; 0 without KASLR.
    #[must_use]
    pub fn kaslr_offset(&self) -> u64 {
        self.kaslr_offset
    }
}

/// The address in a line of `/proc/kallsyms` that is about this symbol of the kernel itself.
fn address(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    (words.nth(1)? == name && words.next().is_none()).then_some(address)
}

/// The offset of a kernel whose text starts here, where all kernels are linked alike.
fn offset_by_rule(text: u64) -> Option<u64> {
    /// `__START_KERNEL` of x86_64, with the usual `CONFIG_PHYSICAL_START`.
    const LINKED: u64 = 0xffff_ffff_8100_0000;
    if !cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        return None;
    }
    // User-Mode Linux is a program, which nothing moves.
    if text >> 63 == 0 { Some(0) } else { text.checked_sub(LINKED) }
}

/// The offset that the kernel tells crash dumps: a line of `vmcoreinfo`, which is a note near the start
/// of `/proc/kcore`.
fn offset_of_kcore() -> Option<u64> {
    let mut head = Vec::new();
    File::open("/proc/kcore").ok()?.take(64 << 10).read_to_end(&mut head).ok()?;
    offset_of_notes(&head)
}

fn offset_of_notes(notes: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\nKERNELOFFSET=";
    let start = notes.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let line = notes[start..].split(|byte| *byte == b'\n').next()?;
    u64::from_str_radix(std::str::from_utf8(line).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff9e200000 T startup_64
ffffffff9e200000 T _stext
ffffffff9e200000 T _text
ffffffff9e200010 t _etext\t[module]
ffffffff9f402345 T _etext
";

    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    #[test]
    fn text_and_offset_come_from_the_symbols() {
        let text = KernelText::from_symbols(SYMBOLS, None).unwrap();
        assert_eq!(text.run_time(), 0xffff_ffff_9e20_0000..0xffff_ffff_9f40_2345);
        assert_eq!(text.kaslr_offset(), 0x1d20_0000);
        assert_eq!(text.link_time(), 0xffff_ffff_8100_0000..0xffff_ffff_8220_2345);
        let uml = SYMBOLS.replace("ffffffff", "00000000");
        assert_eq!(KernelText::from_symbols(&uml, None).unwrap().kaslr_offset(), 0);
    }

    #[test]
    fn what_the_kernel_tells_crash_dumps_comes_first() {
        let notes = b"\x7fELF..VMCOREINFO\0OSRELEASE=7.3\nKERNELOFFSET=1d200000\nX=1\n";
        let offset = offset_of_notes(notes);
        assert_eq!(offset, Some(0x1d20_0000));
        let text = KernelText::from_symbols(SYMBOLS, Some(0x20_0000)).unwrap();
        assert_eq!(text.kaslr_offset(), 0x20_0000);
        assert_eq!(offset_of_notes(b"KERNELOFFSET=12\n"), None);
        assert_eq!(offset_of_notes(b"\nKERNELOFFSET=xyz\n"), None);
    }

    #[test]
    fn hidden_addresses_name_the_permission() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 T _etext\n";
        let error = KernelText::from_symbols(hidden, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("CAP_SYSLOG"), "{error}");
        let error = KernelText::from_symbols("", None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
