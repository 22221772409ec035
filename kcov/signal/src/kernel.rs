//! Location of the running kernel's code.

use crate::{Ranges, RangesError};
use kcov::Pc;
use kcov_sys::arch::TEXT;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;

/// The text of the running Linux kernel: its address range and its KASLR offset.
///
/// ```no_run
/// use kcov_signal::{KernelText, NoveltyMap};
///
/// let text = KernelText::read()?;
/// println!("KASLR offset {:#x}", text.kaslr_offset());
/// let map = NoveltyMap::new(text.ranges()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelText {
    run_time: Range<u64>,
    kaslr_offset: u64,
}

/// Why the kernel's text cannot be found.
#[derive(Debug)]
#[non_exhaustive]
pub enum KernelTextError {
    /// `/proc/kallsyms` cannot be read: not Linux, no /proc, or no `CONFIG_KALLSYMS`.
    Unreadable(io::Error),
    /// All addresses are shown as 0 to this process.
    Hidden,
    /// The symbols `_stext` and `_etext` are missing.
    NoText,
    /// The KASLR offset is unknown. On x86 (also User-Mode Linux), Power, LoongArch and 32-bit Arm this
    /// crate knows the link address. On this machine it needs `/proc/kcore`, which is not readable.
    NoOffset,
}

impl fmt::Display for KernelTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot find the text of the kernel: ")?;
        f.write_str(match self {
            KernelTextError::Unreadable(_) => {
                "/proc/kallsyms cannot be read; run on Linux, mount /proc, and build the kernel with \
                 CONFIG_KALLSYMS=y"
            }
            KernelTextError::Hidden => {
                "all addresses are hidden; give the process CAP_SYSLOG and kernel.kptr_restrict a \
                 value below 2"
            }
            KernelTextError::NoText => "the symbol _stext or _etext is missing; pass the range",
            KernelTextError::NoOffset => {
                "the KASLR offset is unknown here; run as root on a kernel with CONFIG_PROC_KCORE=y"
            }
        })
    }
}

impl std::error::Error for KernelTextError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KernelTextError::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}

impl KernelText {
    /// Reads the kernel's symbols from `/proc/kallsyms`, and `/proc/kcore` if it is readable.
    ///
    /// # Errors
    ///
    /// Says what cannot be read, and which permission it takes.
    pub fn read() -> Result<KernelText, KernelTextError> {
        let symbols = fs::read_to_string("/proc/kallsyms").map_err(KernelTextError::Unreadable)?;
        KernelText::from_symbols(&symbols, offset_of_kcore())
    }

    fn from_symbols(symbols: &str, kcore: Option<u64>) -> Result<KernelText, KernelTextError> {
        let find = |name: &str| symbols.lines().find_map(|line| address(line, name));
        let (start, end) = find("_stext").zip(find("_etext")).ok_or(KernelTextError::NoText)?;
        if start == 0 {
            return Err(KernelTextError::Hidden);
        }
        let offset = kcore.or_else(|| TEXT.offset(false, find));
        let kaslr_offset = offset.ok_or(KernelTextError::NoOffset)?;
        Ok(KernelText { run_time: start..end, kaslr_offset })
    }

    /// The addresses in the running kernel, as in `/proc/kallsyms`.
    #[must_use]
    pub fn run_time(&self) -> Range<u64> {
        self.run_time.clone()
    }

    /// The addresses in the kernel's file, `vmlinux`: those that Linux records.
    #[must_use]
    pub fn link_time(&self) -> Range<u64> {
        let moved = |address: u64| Pc::new(address.wrapping_sub(self.kaslr_offset));
        moved(self.run_time.start).address()..moved(self.run_time.end).address()
    }

    /// The recorded addresses as ranges for a map, without modules.
    ///
    /// # Errors
    ///
    /// Same as [`Ranges::single`].
    pub fn ranges(&self) -> Result<Ranges, RangesError> {
        Ranges::single(self.link_time())
    }

    /// Run-time minus link-time addresses, in bytes; 0 without KASLR.
    #[must_use]
    pub fn kaslr_offset(&self) -> u64 {
        self.kaslr_offset
    }
}

/// The address in a line of `/proc/kallsyms`, if the line is about this symbol of the kernel
/// itself.
fn address(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    (words.nth(1)? == name && words.next().is_none()).then_some(address)
}

/// The offset in `vmcoreinfo`, for crash dumps: a line of a note near the start of `/proc/kcore`.
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
        assert!(error.to_string().contains("CAP_SYSLOG"), "{error}");
        assert!(matches!(KernelText::from_symbols("", None), Err(KernelTextError::NoText)));
    }
}
