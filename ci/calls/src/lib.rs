//! Finds the calls of given functions in a kernel's ELF file.
//!
//! [`relocated_calls`] reads relocations. They are exact on every architecture, and need a kernel
//! that was linked and compiled for it. [`Code`] decodes x86, for kernels from elsewhere and for
//! User-Mode Linux. There relocations do not tell where a call is: in the large code model the kernel
//! loads a function's address into a register. The register may hold it across many calls, and may
//! be spilled to the stack.
//!
//! Debug information (`DW_TAG_call_site`) is no substitute for [`Code`]: Clang does not describe the
//! calls that its sanitizers add, and GCC describes none with `-fno-var-tracking`, which
//! `CONFIG_DEBUG_INFO_REDUCED` sets.

mod flow;

use flow::Reached;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Register};
use object::{
    Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SectionKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// The code of an x86 kernel.
#[derive(Debug)]
pub struct Code {
    /// All instructions, sorted by address.
    instructions: Vec<Instruction>,
    /// Names by address.
    symbols: BTreeMap<u64, Vec<String>>,
    /// The addresses that are called directly. Functions may lack a symbol.
    called: BTreeSet<u64>,
}

impl Code {
    /// Reads a kernel's ELF file.
    pub fn read(bytes: &[u8]) -> Result<Code, String> {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let bits = match file.architecture() {
            Architecture::X86_64 => 64,
            Architecture::I386 => 32,
            other => return Err(format!("is for {other:?}; only code for x86 is decoded")),
        };
        let mut symbols: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for symbol in file.symbols().filter(object::ObjectSymbol::is_definition) {
            let name = symbol.name().map_err(|error| error.to_string())?;
            symbols.entry(symbol.address()).or_default().push(name.to_owned());
        }
        let mut instructions = Vec::new();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let bytes = section.data().map_err(|error| error.to_string())?;
            decode(bits, bytes, section.address(), &symbols, &mut instructions);
        }
        instructions.sort_unstable_by_key(Instruction::ip);
        let calls = instructions.iter().filter(|at| at.flow_control() == FlowControl::Call);
        let called = calls.map(Instruction::near_branch_target).collect();
        Ok(Code { instructions, symbols, called })
    }

    /// The names that `wanted` accepts, sorted by address.
    pub fn names(&self, wanted: impl Fn(&str) -> bool) -> Vec<&str> {
        let names = self.symbols.values().flatten().map(String::as_str);
        names.filter(|name| wanted(name)).collect()
    }

    /// Returns the return addresses of a function's calls, or [`None`] if there is no such
    /// function.
    #[must_use]
    pub fn calls(&self, name: &str) -> Option<BTreeSet<u64>> {
        let address = self.addresses(name).next()?;
        Some(flow::reach(&self.instructions, &self.symbols, &BTreeSet::from([address])).calls)
    }

    /// Returns the possible return addresses of a function, or [`None`] if there is no such
    /// function.
    ///
    /// The compiler may turn a final call in another function into a jump. The return address is
    /// then that of the other function's caller. Calls through pointers are not included.
    #[must_use]
    pub fn return_addresses(&self, name: &str) -> Option<BTreeSet<u64>> {
        let targets: BTreeSet<u64> = self.addresses(name).take(1).collect();
        (!targets.is_empty()).then(|| self.returns_of(targets))
    }

    /// Returns the return addresses of calls with an unknown callee. A function that ends with a
    /// jump through a pointer returns from an unknown function, too.
    #[must_use]
    pub fn through_pointers(&self) -> BTreeSet<u64> {
        let mut found = flow::through_pointers(&self.instructions, &self.symbols);
        // A jump table has an index.
        let is_end = |at: &&Instruction| {
            at.flow_control() == FlowControl::IndirectBranch && at.memory_index() == Register::None
        };
        let ends = self.instructions.iter().filter(is_end);
        let mut functions: BTreeSet<u64> = ends.flat_map(|end| self.functions(end.ip())).collect();
        // A static call goes through a trampoline until the kernel patches it into a direct call.
        let is_trampoline = |names: &[String]| names.iter().any(|name| name.starts_with("__SCT__"));
        let trampolines = self.symbols.iter().filter(|(_, names)| is_trampoline(names));
        functions.extend(trampolines.map(|(address, _)| *address));
        found.extend(self.returns_of(functions));
        found
    }

    /// Returns the return addresses of these functions and of those that end with a jump to one.
    fn returns_of(&self, mut targets: BTreeSet<u64>) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        let mut new = targets.clone();
        while !new.is_empty() {
            let Reached { calls, jumps } = flow::reach(&self.instructions, &self.symbols, &new);
            found.extend(calls);
            let ending = jumps.iter().flat_map(|jump| self.functions(*jump));
            new = ending.filter(|function| targets.insert(*function)).collect();
        }
        found
    }

    fn addresses(&self, name: &str) -> impl Iterator<Item = u64> {
        let named = move |names: &Vec<String>| names.iter().any(|other| other == name);
        self.symbols.iter().filter(move |(_, names)| named(names)).map(|(address, _)| *address)
    }

    /// Returns the functions that may contain this address. Several functions may share a name.
    fn functions(&self, address: u64) -> Vec<u64> {
        let Some((start, names)) = self.symbols.range(..=address).next_back() else {
            return Vec::new();
        };
        let whole = names.iter().filter_map(|name| name.split_once(".cold"));
        let mut all: Vec<u64> = whole.flat_map(|(name, _)| self.addresses(name)).collect();
        all.push(*self.called.range(*start..=address).next_back().unwrap_or(start));
        all
    }
}

/// Restarts at each symbol, so that data in the code does no harm.
fn decode(
    bits: u32,
    bytes: &[u8],
    address: u64,
    symbols: &BTreeMap<u64, Vec<String>>,
    code: &mut Vec<Instruction>,
) {
    let end = address + bytes.len() as u64;
    let mut from = address;
    while from < end {
        let to = symbols.range(from + 1..end).next().map_or(end, |(start, _)| *start);
        let part = &bytes[(from - address) as usize..(to - address) as usize];
        code.extend(&mut Decoder::with_ip(bits, part, from, DecoderOptions::NONE));
        from = to;
    }
}

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

#[cfg(test)]
mod tests;
