//! The calls of the coverage hook in a kernel's file.
//!
//! A kernel calls the hook by its distance. User-Mode Linux is compiled for the large code model, in
//! which the hook's address is moved to a register; that one may keep it over many calls, or it may
//! wait on the stack.

mod flow;

use iced_x86::{Decoder, DecoderOptions, Instruction};
use kcov::Pc;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};
use std::collections::BTreeSet;

/// What the compiler calls at the beginning of every block.
const HOOK: &str = "__sanitizer_cov_trace_pc";

/// What kcov records of each call of the hook in a kernel's file, without order.
pub fn find(bytes: &[u8]) -> Result<Vec<Pc>, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let hook = file.symbols().find(|symbol| symbol.name() == Ok(HOOK));
    let hook =
        hook.ok_or_else(|| format!("has no {HOOK}: it is not a kernel with kcov"))?.address();
    let defined = file.symbols().filter(object::ObjectSymbol::is_definition);
    let starts: BTreeSet<u64> = defined.map(|symbol| symbol.address()).collect();
    let mut code = Vec::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let bytes = section.data().map_err(|error| error.to_string())?;
        decode(bytes, section.address(), &starts, &mut code);
    }
    code.sort_unstable_by_key(Instruction::ip);
    let mut all: Vec<Pc> = code
        .iter()
        .filter(|call| call.is_call_near() && call.near_branch_target() == hook)
        .map(|call| Pc::new(call.next_ip()))
        .collect();
    all.extend(flow::calls(&code, &starts, hook));
    Ok(all)
}

/// Begins anew at each symbol, so that data in the code does no harm.
fn decode(bytes: &[u8], address: u64, starts: &BTreeSet<u64>, code: &mut Vec<Instruction>) {
    let end = address + bytes.len() as u64;
    let mut from = address;
    while from < end {
        let to = starts.range(from + 1..end).next().copied().unwrap_or(end);
        let part = &bytes[(from - address) as usize..(to - address) as usize];
        code.extend(&mut Decoder::with_ip(64, part, from, DecoderOptions::NONE));
        from = to;
    }
}

#[cfg(test)]
mod tests;
