//! The tracefile of lcov(1), from which genhtml(1) makes pages.
//!
//! What could have been covered is found in the kernel's file: every call of the coverage hook. Of
//! files in which nothing was covered nothing is said, or the pages would be those of the kernel.

use crate::cli::Error;
use crate::coverage::Coverage;
use crate::hooks;
use crate::symbols::Symbols;
use kcov::Pc;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines and functions of one file, with how often they were gone through.
#[derive(Default)]
struct Lines {
    lines: BTreeMap<u32, u64>,
    /// By name: the first line that is known, and how often.
    functions: BTreeMap<String, (u32, u64)>,
}

/// The tracefile. `kernel` is the file that the symbols are of.
pub fn render(coverage: &Coverage, symbols: &Symbols, kernel: &Path) -> Result<String, Error> {
    let bytes = fs::read(kernel).map_err(Error::of(kernel.display()))?;
    let fail = |why: &str| Error::Unavailable(format!("{}: {why}", kernel.display()));
    let counts: HashMap<Pc, u64> = coverage.total().into_iter().collect();
    let mut all: BTreeSet<Pc> =
        hooks::find(&bytes).map_err(|why| fail(&why))?.into_iter().collect();
    // Beside them: a call that ends a function may be compiled as a jump, and its record is then
    // one of the function's caller.
    all.extend(counts.keys());
    let mut files: BTreeMap<PathBuf, Lines> = BTreeMap::new();
    for pc in all {
        let count = counts.get(&pc).copied().unwrap_or(0);
        for frame in symbols.look_up(pc, coverage).frames {
            let Some((file, line)) = frame.line.filter(|(_, line)| *line > 0) else { continue };
            let file = files.entry(file).or_default();
            // Several blocks of a line are not several times.
            let known = file.lines.entry(line).or_default();
            *known = count.max(*known);
            let known = file.functions.entry(frame.function).or_insert((line, 0));
            *known = (line.min(known.0), count.max(known.1));
        }
    }
    if files.is_empty() {
        return Err(fail("has no debug information; the target linux-uml-dwarf has"));
    }
    files.retain(|_, lines| lines.lines.values().any(|count| *count > 0));
    Ok(files.iter().map(|(file, lines)| section(file, lines)).collect())
}

fn section(file: &Path, Lines { lines, functions }: &Lines) -> String {
    let mut text = format!("TN:\nSF:{}\n", file.display());
    let mut line = |what: std::fmt::Arguments<'_>| {
        writeln!(text, "{what}").expect("writing to a string cannot fail");
    };
    for (name, (first, _)) in functions {
        line(format_args!("FN:{first},{name}"));
    }
    for (name, (_, count)) in functions {
        line(format_args!("FNDA:{count},{name}"));
    }
    let hit = functions.values().filter(|(_, count)| *count > 0).count();
    line(format_args!("FNF:{}\nFNH:{hit}", functions.len()));
    for (number, count) in lines {
        line(format_args!("DA:{number},{count}"));
    }
    let hit = lines.values().filter(|count| **count > 0).count();
    line(format_args!("LF:{}\nLH:{hit}\nend_of_record", lines.len()));
    text
}
