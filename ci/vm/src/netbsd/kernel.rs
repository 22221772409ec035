//! Checks the kernel that the user gave, and reads the notes of NetBSD files.

use crate::error::{Error, OrUnavailable as _, Phase, Result};
use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use std::fs;
use std::path::Path;

type Header = FileHeader64<LittleEndian>;

const LITTLE: LittleEndian = LittleEndian;

/// Refuses files that cannot be a kernel of this release, before anything is built for it. Returns
/// whether QEMU starts it directly, without a disc.
pub fn check(file: &Path, release: &str) -> Result<bool> {
    let bytes = fs::read(file).or_unavailable(Phase::Kernel, file.display())?;
    let version = version(&bytes).map_err(|why| {
        Error::unavailable(Phase::Kernel, format!("--kernel {}: {why}", file.display()))
    })?;
    if !version.starts_with(release) {
        return Err(Error::NotGiven(format!(
            "{} is NetBSD {version}, which does not begin with `{release}`; name another target, \
             or another beginning with --declare-release",
            file.display()
        )));
    }
    Ok(has_pvh_entry(&bytes))
}

fn version(bytes: &[u8]) -> std::result::Result<String, String> {
    if bytes.starts_with(b"\x1f\x8b") {
        return Err("is packed; unpack it with gunzip".into());
    }
    let version =
        netbsd_version(bytes).ok_or("is not a NetBSD/amd64 kernel: it lacks NetBSD's ELF note")?;
    if !is_kernel(bytes) {
        return Err("is a NetBSD program, not a kernel".into());
    }
    Ok(words(version))
}

/// Formats the version number `MMmmrrpp00`. Only development versions use the patch level.
fn words(version: u32) -> String {
    let (major, minor, patch) = (version / 100_000_000, version / 1_000_000 % 100, version / 100);
    match patch % 10_000 {
        0 => format!("{major}.{minor}"),
        patch => format!("{major}.{minor}.{patch}"),
    }
}

/// Returns the version number of a NetBSD file for x86_64. Older kernels have the note only in a
/// section.
pub(super) fn netbsd_version(bytes: &[u8]) -> Option<u32> {
    let content = note(bytes, b"NetBSD", 1, true).or_else(|| note(bytes, b"NetBSD", 1, false))?;
    Some(u32::from_le_bytes(content.try_into().ok()?))
}

/// Whether QEMU can start this kernel directly. QEMU needs a Xen note with a 32-bit entry point, in a
/// segment.
fn has_pvh_entry(bytes: &[u8]) -> bool {
    note(bytes, b"Xen", 18, true).is_some()
}

/// Whether it runs in the upper half of the address space, as kernels do.
fn is_kernel(bytes: &[u8]) -> bool {
    header(bytes).is_some_and(|header| header.e_entry.get(LITTLE) >> 63 == 1)
}

/// Whether it needs an interpreter, and thus libraries.
pub(super) fn is_dynamic(bytes: &[u8]) -> bool {
    let segments = header(bytes).and_then(|header| header.program_headers(LITTLE, bytes).ok());
    segments.unwrap_or_default().iter().any(|segment| segment.p_type(LITTLE) == PT_INTERP)
}

fn header(bytes: &[u8]) -> Option<&Header> {
    Header::parse(bytes).ok().filter(|header| header.e_machine(LITTLE) == EM_X86_64)
}

/// Returns the content of the first note of this owner and kind, in the segments or the sections.
fn note<'a>(bytes: &'a [u8], owner: &[u8], kind: u32, segments: bool) -> Option<&'a [u8]> {
    let header = header(bytes)?;
    let all: Vec<_> = if segments {
        let segments = header.program_headers(LITTLE, bytes).ok()?.iter();
        segments.filter_map(|one| one.notes(LITTLE, bytes).ok().flatten()).collect()
    } else {
        let sections = header.section_headers(LITTLE, bytes).ok()?.iter();
        sections.filter_map(|one| one.notes(LITTLE, bytes).ok().flatten()).collect()
    };
    for mut notes in all {
        while let Ok(Some(note)) = notes.next() {
            if note.name() == owner && note.n_type(LITTLE) == kind {
                return Some(note.desc());
            }
        }
    }
    None
}
