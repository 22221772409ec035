//! The facts about Linux programs that decide whether and how a guest runs them.

use crate::arch::Arch;
use object::elf::{DT_NEEDED, FileHeader32, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _};
use object::{Endianness, FileKind};

/// Who loads the libraries of an ELF file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Linked {
    /// There are none.
    Static,
    /// The loader that a program names.
    By(String),
    /// The loader of the program that loads this library.
    ByAnother,
}

/// Returns who loads the libraries of an ELF file. The error says why no guest of this architecture
/// can run it.
pub fn linked(bytes: &[u8], arch: &Arch) -> Result<Linked, String> {
    match FileKind::parse(bytes) {
        Ok(FileKind::Elf64) => of::<FileHeader64<Endianness>>(bytes, arch),
        Ok(FileKind::Elf32) => of::<FileHeader32<Endianness>>(bytes, arch),
        _ => Err("is not an ELF program".into()),
    }
}

fn of<H: FileHeader<Endian = Endianness>>(bytes: &[u8], arch: &Arch) -> Result<Linked, String> {
    const DAMAGED: &str = "is a damaged ELF file";
    let header = H::parse(bytes).map_err(|_| DAMAGED)?;
    let endian = header.endian().map_err(|_| DAMAGED)?;
    let is_64 = header.is_class_64();
    if !arch.runs(header.e_machine(endian), is_64, header.is_big_endian()) {
        return Err(format!("is not a program for {}", arch.name));
    }
    let mut linked = Linked::Static;
    for segment in header.program_headers(endian, bytes).map_err(|_| DAMAGED)? {
        if let Some(name) = segment.interpreter(endian, bytes).map_err(|_| DAMAGED)? {
            let name = String::from_utf8(name.to_vec()).map_err(|_| DAMAGED)?;
            return Ok(Linked::By(name));
        }
        let entries = segment.dynamic(endian, bytes).map_err(|_| DAMAGED)?.unwrap_or_default();
        if entries.iter().any(|entry| entry.tag32(endian) == Some(DT_NEEDED)) {
            linked = Linked::ByAnother;
        }
    }
    Ok(linked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(bytes: &[u8]) -> Result<Linked, String> {
        super::linked(bytes, Arch::usual())
    }

    const NAME: &[u8] = b"/lib/ld.so\0";

    /// A program of 64 or 32 bits with these segments. All of them are the name at its end.
    fn program(is_64: bool, segments: &[u32]) -> Vec<u8> {
        let (head, entry) = if is_64 { (64, 56) } else { (52, 32) };
        let mut bytes = vec![0; head];
        bytes[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
        bytes[4] += u8::from(is_64);
        bytes[18] = if is_64 { 62 } else { 3 };
        // The place, the size and the number of entries.
        let [place, size] = if is_64 { [32, 54] } else { [28, 42] };
        bytes[place] = head as u8;
        bytes[size] = entry as u8;
        bytes[size + 2] = segments.len() as u8;
        let end = (head + entry * segments.len()) as u8;
        for kind in segments {
            let start = bytes.len();
            bytes.resize(start + entry, 0);
            bytes[start] = *kind as u8;
            let [place, length] = if is_64 { [8, 32] } else { [4, 16] };
            bytes[start + place] = end;
            bytes[start + length] = NAME.len() as u8;
        }
        [&bytes, NAME].concat()
    }

    #[test]
    fn dynamic_programs_name_their_loader() {
        for is_64 in [true, false] {
            assert_eq!(linked(&program(is_64, &[1, 1])), Ok(Linked::Static));
            assert_eq!(linked(&program(is_64, &[1, 3])), Ok(Linked::By("/lib/ld.so".into())));
        }
    }

    #[test]
    fn anything_else_is_told_apart() {
        assert!(linked(b"#!/bin/sh").is_err_and(|why| why.contains("not an ELF")));
        assert!(linked(b"\x7fELF\x01").is_err_and(|why| why.contains("not an ELF")));
        assert!(linked(&program(true, &[1, 1])[..100]).is_err_and(|why| why.contains("damaged")));
        let mut whole = program(true, &[1, 3]);
        let cut = &whole[..whole.len() - 1];
        assert!(linked(cut).is_err_and(|why| why.contains("damaged")));
        whole[18] = 183;
        assert!(linked(&whole).is_err_and(|why| why == "is not a program for x86_64"));
    }
}
