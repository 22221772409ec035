//! Finds the calls of given functions by an ELF file's relocations: in a module, and in a kernel
//! that was linked with `--emit-relocs`.

use object::{
    Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SectionKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// The opcode of x86's call. Its relocation has the type of a jump's.
const CALL: u8 = 0xe8;

/// The return addresses of the calls, keyed by section and function name. In a module they are
/// offsets in the section.
pub type Relocated = BTreeMap<(String, String), BTreeSet<u64>>;

/// Finds the calls of wanted functions. `types` has the types of calls' relocations, each with the
/// distance in bytes from the relocated field to the return address.
///
/// The compiler must not turn calls into jumps (`-fno-optimize-sibling-calls`), because most
/// architectures have the same relocation for both. On x86, jumps are left out.
///
/// # Errors
///
/// If the file is no ELF file, or if code refers to a wanted function by another relocation.
pub fn relocated_calls(
    bytes: &[u8],
    types: &[(u32, u64)],
    wanted: impl Fn(&str) -> bool,
) -> Result<Relocated, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let x86 = matches!(file.architecture(), Architecture::X86_64 | Architecture::I386);
    let mut found = Relocated::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let code = section.data().map_err(|error| error.to_string())?;
        let name = section.name().map_err(|error| error.to_string())?;
        for (field, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let symbol = file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
            let function = symbol.name().map_err(|error| error.to_string())?;
            if !wanted(function) {
                continue;
            }
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let Some((_, distance)) = types.iter().find(|(known, _)| *known == r_type) else {
                return Err(format!(
                    "{name}: {function} is not called at {field:#x}: relocation of type {r_type}"
                ));
            };
            let opcode =
                || code.get(usize::try_from(field - section.address()).ok()?.checked_sub(1)?);
            if !x86 || opcode() == Some(&CALL) {
                let place = (name.to_owned(), function.to_owned());
                found.entry(place).or_default().insert(field + distance);
            }
        }
    }
    Ok(found)
}
