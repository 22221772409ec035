//! Reads the notes of an ELF file: its system and its entry point.

/// Returns the version number of a NetBSD file for x86_64.
pub fn netbsd_version(bytes: &[u8]) -> Option<u32> {
    const IDENT: u32 = 1;
    let file = File::new(bytes)?;
    let word = |note: &Note<'_>| Some(u32::from_le_bytes(note.content.try_into().ok()?));
    // Older kernels have the note only in a section.
    file.notes(Table::Segments)
        .chain(file.notes(Table::Sections))
        .find(|note| note.owner == b"NetBSD" && note.kind == IDENT)
        .and_then(|note| word(&note))
}

/// Whether QEMU can start this kernel directly. QEMU needs a Xen note with a
/// 32-bit entry point, in a segment.
pub fn has_pvh_entry(bytes: &[u8]) -> bool {
    const PHYS32_ENTRY: u32 = 18;
    File::new(bytes).is_some_and(|file| {
        file.notes(Table::Segments).any(|note| note.owner == b"Xen" && note.kind == PHYS32_ENTRY)
    })
}

/// Whether it runs in the upper half of the address space, as kernels do.
pub fn is_kernel(bytes: &[u8]) -> bool {
    File::new(bytes).and_then(|file| file.long(24)).is_some_and(|entry| entry >> 63 == 1)
}

/// Returns the parts of a file that are loaded.
pub fn loaded(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    const LOAD: u32 = 1;
    File::new(bytes)?.pieces(Table::Segments, LOAD)
}

/// Whether it needs an interpreter, and thus libraries.
pub fn is_dynamic(bytes: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    File::new(bytes)
        .and_then(|file| file.pieces(Table::Segments, INTERPRETER))
        .is_some_and(|found| !found.is_empty())
}

/// A 64-bit, little-endian ELF file for x86_64.
#[derive(Clone, Copy)]
struct File<'a>(&'a [u8]);

/// The tables that can hold notes.
#[derive(Clone, Copy)]
enum Table {
    Segments,
    Sections,
}

struct Note<'a> {
    owner: &'a [u8],
    kind: u32,
    content: &'a [u8],
}

impl<'a> File<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        const X86_64: u16 = 62;
        let file = Self(bytes);
        let fits = bytes.starts_with(b"\x7fELF\x02\x01") && file.half(18) == Some(X86_64);
        fits.then_some(file)
    }

    fn at<const SIZE: usize>(self, at: usize) -> Option<[u8; SIZE]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn half(self, at: usize) -> Option<u16> {
        self.at(at).map(u16::from_le_bytes)
    }

    fn word(self, at: usize) -> Option<u32> {
        self.at(at).map(u32::from_le_bytes)
    }

    fn long(self, at: usize) -> Option<u64> {
        self.at(at).map(u64::from_le_bytes)
    }

    fn notes(self, table: Table) -> impl Iterator<Item = Note<'a>> {
        let kind = match table {
            Table::Segments => 4,
            Table::Sections => 7,
        };
        self.pieces(table, kind).unwrap_or_default().into_iter().flat_map(|area| {
            let mut rest = area;
            std::iter::from_fn(move || {
                let (note, tail) = Note::first(rest)?;
                rest = tail;
                Some(note)
            })
        })
    }

    /// Returns the parts of the file with the wanted kind; `None` if the file
    /// is damaged.
    fn pieces(self, table: Table, wanted: u32) -> Option<Vec<&'a [u8]>> {
        // The offsets of the table's position, entry size and entry count; then
        // the offsets of the kind, position and size in an entry.
        let (start, size, count, [kind, place, length]) = match table {
            Table::Segments => (self.long(32)?, self.half(54)?, self.half(56)?, [0, 8, 32]),
            Table::Sections => (self.long(40)?, self.half(58)?, self.half(60)?, [4, 24, 32]),
        };
        let start = usize::try_from(start).ok()?;
        let mut pieces = Vec::new();
        for index in 0..usize::from(count) {
            let entry = start.checked_add(index * usize::from(size))?;
            if self.word(entry.checked_add(kind)?)? == wanted {
                let place = usize::try_from(self.long(entry.checked_add(place)?)?).ok()?;
                let length = usize::try_from(self.long(entry.checked_add(length)?)?).ok()?;
                pieces.push(self.0.get(place..place.checked_add(length)?)?);
            }
        }
        Some(pieces)
    }
}

impl<'a> Note<'a> {
    /// Splits off the first note. All parts are padded to four bytes.
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (name, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let content = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let owner = bytes.get(12..12_usize.checked_add(name)?)?;
        let end = content.checked_add(size)?;
        let note = Self {
            owner: owner.strip_suffix(b"\0").unwrap_or(owner),
            kind,
            content: bytes.get(content..end)?,
        };
        let next = end.checked_next_multiple_of(4)?.min(bytes.len());
        Some((note, &bytes[next..]))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

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
        put(0, b"\x7fELF\x02\x01");
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

    #[test]
    fn notes_are_found_among_others() {
        let notes = [note("GNU", 3, b"id"), ident(), pvh()].concat();
        for in_segment in [true, false] {
            let bytes = file(1 << 63, &notes, in_segment);
            assert_eq!(netbsd_version(&bytes), Some(1_099_001_200));
            assert_eq!(has_pvh_entry(&bytes), in_segment);
            assert!(is_kernel(&bytes));
        }
        assert!(!has_pvh_entry(&file(0, &ident(), true)));
        assert!(!is_kernel(&file(0x40_0000, &ident(), true)));
    }

    #[test]
    fn damaged_files_have_no_notes() {
        let whole = file(1 << 63, &[ident(), pvh()].concat(), true);
        for length in 0..whole.len() {
            let _ = netbsd_version(&whole[..length]);
            assert!(!has_pvh_entry(&whole[..length]), "{length}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] = 0xff;
            let _ = (netbsd_version(&bytes), has_pvh_entry(&bytes));
        }
        assert_eq!(netbsd_version(b"#!/bin/sh"), None);
    }
}
