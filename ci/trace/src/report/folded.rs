//! Writes stacks for flame graphs, a stack and its number of records on each line.
//!
//! kcov records no calls, so a stack is the place of a program counter in the kernel's sources: the
//! directories, the file, the function and the functions inlined into it.

use super::{find, root};
use crate::coverage::Coverage;
use crate::symbols::{Place, Symbols};
use std::collections::BTreeMap;
use std::path::Path;

/// Renders the stacks, whose parts are separated by semicolons, with their numbers of records, in
/// alphabetical order. Those of the kernel's workers begin with `background`.
pub fn render(coverage: &Coverage, symbols: &Symbols) -> String {
    let [own, background] =
        [false, true].map(|is| coverage.sum(|thread| (thread.process == 0) == is));
    let count = own.len();
    let found = find(own.into_iter().chain(background).collect(), symbols, coverage);
    let root = root(&found);
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for (index, (_, records, place)) in found.iter().enumerate() {
        let part = if index < count { "" } else { "background;" };
        *stacks.entry(format!("{part}{}", stack(place, &root))).or_default() += records;
    }
    stacks.iter().map(|(stack, records)| format!("{stack} {records}\n")).collect()
}

fn stack(place: &Place, root: &Path) -> String {
    let Some(outermost) = place.frames.last() else {
        return if place.symbol.is_empty() { "??".into() } else { place.symbol.to_string() };
    };
    let mut stack = String::new();
    if let Some((file, _)) = &outermost.line {
        for part in file.strip_prefix(root).unwrap_or(file) {
            stack += &format!("{};", part.to_string_lossy());
        }
    }
    let functions = place.frames.iter().rev().map(|frame| &*frame.function);
    stack + &functions.collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Frame;

    #[test]
    fn a_stack_is_the_place_in_the_sources() {
        let frame = |function: &str, file: &str| Frame {
            function: function.into(),
            line: Some((Path::new(file).into(), 7)),
        };
        // The innermost frame comes first.
        let frames = vec![frame("spin_lock", "/s/include/spin.h"), frame("read", "/s/fs/a.c")];
        let place = Place { symbol: "read".into(), frames, ..Place::default() };
        assert_eq!(stack(&place, Path::new("/s")), "fs;a.c;read;spin_lock");
        let place = Place { symbol: "read".into(), ..Place::default() };
        assert_eq!(stack(&place, Path::new("")), "read");
        assert_eq!(stack(&Place::default(), Path::new("")), "??");
    }
}
