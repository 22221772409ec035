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
