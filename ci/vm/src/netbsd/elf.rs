//! Reads the notes of an ELF file: its system and its entry point.

use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64, PT_INTERP, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

type Header = FileHeader64<LittleEndian>;

const LITTLE: LittleEndian = LittleEndian;

/// Returns the version number of a NetBSD file for x86_64. Older kernels have the note only in a
/// section.
pub fn netbsd_version(bytes: &[u8]) -> Option<u32> {
    let content = note(bytes, b"NetBSD", 1, true).or_else(|| note(bytes, b"NetBSD", 1, false))?;
    Some(u32::from_le_bytes(content.try_into().ok()?))
}

/// Whether QEMU can start this kernel directly. QEMU needs a Xen note with a 32-bit entry point, in a
/// segment.
pub fn has_pvh_entry(bytes: &[u8]) -> bool {
    note(bytes, b"Xen", 18, true).is_some()
}

/// Whether it runs in the upper half of the address space, as kernels do.
pub fn is_kernel(bytes: &[u8]) -> bool {
    header(bytes).is_some_and(|header| header.e_entry.get(LITTLE) >> 63 == 1)
}

/// Returns the parts of a file that are loaded; `None` if it is damaged.
pub fn loaded(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let segments = header(bytes)?.program_headers(LITTLE, bytes).ok()?.iter();
    segments
        .filter(|segment| segment.p_type(LITTLE) == PT_LOAD)
        .map(|segment| segment.data(LITTLE, bytes).ok())
        .collect()
}

/// Whether it needs an interpreter, and thus libraries.
pub fn is_dynamic(bytes: &[u8]) -> bool {
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

#[cfg(test)]
pub(super) mod tests {
    fn note(owner: &str, kind: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [owner.len() as u32 + 1, content.len() as u32, kind] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for part in [format!("{owner}\0").as_bytes(), content] {
            bytes.extend_from_slice(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    /// A file with notes in a section, and optionally in a segment as well.
    pub fn file(entry: u64, notes: &[u8], in_segment: bool) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"\x7fELF\x02\x01\x01");
        put(18, &62_u16.to_le_bytes());
        put(24, &entry.to_le_bytes());
        put(32, &64_u64.to_le_bytes()); // segments
        put(40, &120_u64.to_le_bytes()); // sections
        put(54, &56_u16.to_le_bytes());
        put(56, &1_u16.to_le_bytes());
        put(58, &64_u16.to_le_bytes());
        put(60, &1_u16.to_le_bytes());
        bytes.resize(184, 0);
        let (place, length) = (184_u64.to_le_bytes(), (notes.len() as u64).to_le_bytes());
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(64, &(if in_segment { 4_u32 } else { 1 }).to_le_bytes());
        put(64 + 8, &place);
        put(64 + 32, &length);
        put(120 + 4, &7_u32.to_le_bytes());
        put(120 + 24, &place);
        put(120 + 32, &length);
        bytes.extend_from_slice(notes);
        bytes
    }

    pub fn ident() -> Vec<u8> {
        note("NetBSD", 1, &1_099_001_200_u32.to_le_bytes())
    }

    pub fn pvh() -> Vec<u8> {
        note("Xen", 18, &0x20_b460_u32.to_le_bytes())
    }
}
