//! Finds the calls of given functions in a module that is not yet relocated.

use object::elf::R_X86_64_PLT32;
use object::{
    Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SectionKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// The opcode of a call by relative offset. The offset is a field of 4 bytes.
const CALL: u8 = 0xe8;

/// The return addresses of the calls as offsets in a section, keyed by section and function name.
pub type ModuleCalls = BTreeMap<(String, String), BTreeSet<u64>>;

/// Finds the calls of wanted functions in a module's ELF file.
pub fn module_calls(bytes: &[u8], wanted: impl Fn(&str) -> bool) -> Result<ModuleCalls, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    if file.architecture() != Architecture::X86_64 {
        return Err(format!("is for {:?}; only x86-64 is supported", file.architecture()));
    }
    let mut calls = ModuleCalls::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let code = section.data().map_err(|error| error.to_string())?;
        let name = section.name().map_err(|error| error.to_string())?;
        for (field, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let symbol = file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
            let function = symbol.name().map_err(|error| error.to_string())?;
            let by_offset = relocation.flags() == RelocationFlags::Elf { r_type: R_X86_64_PLT32 };
            let opcode = field.checked_sub(1).and_then(|at| code.get(usize::try_from(at).ok()?));
            if by_offset && opcode == Some(&CALL) && wanted(function) {
                let place = (name.to_owned(), function.to_owned());
                calls.entry(place).or_default().insert(field + 4);
            }
        }
    }
    Ok(calls)
}
