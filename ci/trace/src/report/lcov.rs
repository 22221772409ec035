//! Writes a tracefile of lcov(1), which genhtml(1) turns into pages.
//!
//! The possible coverage comes from the kernel's file: every call of the coverage hook. Files
//! without any coverage are omitted, because the pages would otherwise cover the whole kernel.

use crate::coverage::Coverage;
use crate::error::Error;
use crate::symbols::Symbols;
use kcov::Pc;
use kcov_vm_calls::Code;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The function that the compiler calls at the beginning of every block.
const HOOK: &str = "__sanitizer_cov_trace_pc";

/// Lines and functions of one file, with their counts.
#[derive(Default)]
struct Lines {
    lines: BTreeMap<u32, u64>,
    /// By name: the first known line and the count.
    functions: BTreeMap<Arc<str>, (u32, u64)>,
}

/// Renders the tracefile, which needs the kernel's image.
pub fn render(coverage: &Coverage, symbols: &Symbols) -> Result<String, Error> {
    let Symbols::Image(image) = symbols else {
        return Err(Error::from("a tracefile needs --vmlinux FILE".to_owned()));
    };
    let fail = |why: &str| Error::about(image.file.display(), why);
    let counts: HashMap<Pc, u64> = coverage.total().into_iter().collect();
    let bytes = fs::read(&image.file).map_err(Error::of(image.file.display()))?;
    let calls = Code::read(&bytes).map_err(|why| fail(&why))?.calls(HOOK);
    let calls =
        calls.ok_or_else(|| fail("has no coverage hook: the kernel was built without kcov"))?;
    let mut all: BTreeSet<Pc> = calls.into_iter().map(Pc::new).collect();
    // Add the records themselves: the compiler may turn a function's final call into a jump, and
    // its record then belongs to the function's caller.
    all.extend(counts.keys());
    let all: Vec<Pc> = all.into_iter().collect();
    let mut files: BTreeMap<Arc<Path>, Lines> = BTreeMap::new();
    for (pc, place) in all.iter().zip(symbols.look_up(&all, coverage)) {
        let count = counts.get(pc).copied().unwrap_or(0);
        for frame in place.frames {
            let Some((file, line)) = frame.line.filter(|(_, line)| *line > 0) else { continue };
            let file = files.entry(file).or_default();
            // Several blocks of a line do not multiply its count.
            let known = file.lines.entry(line).or_default();
            *known = count.max(*known);
            let known = file.functions.entry(frame.function).or_insert((line, 0));
            *known = (line.min(known.0), count.max(known.1));
        }
    }
    if files.is_empty() {
        return Err(fail("has no debug information; use the target linux-uml-dwarf"));
    }
    files.retain(|_, lines| lines.lines.values().any(|count| *count > 0));
    Ok(files.iter().map(|(file, lines)| section(file, lines)).collect())
}

fn section(file: &Path, Lines { lines, functions }: &Lines) -> String {
    let mut text = format!("TN:\nSF:{}\n", file.display());
    text.extend(functions.iter().map(|(name, (first, _))| format!("FN:{first},{name}\n")));
    text.extend(functions.iter().map(|(name, (_, count))| format!("FNDA:{count},{name}\n")));
    let hit = functions.values().filter(|(_, count)| *count > 0).count();
    text += &format!("FNF:{}\nFNH:{hit}\n", functions.len());
    text.extend(lines.iter().map(|(number, count)| format!("DA:{number},{count}\n")));
    let hit = lines.values().filter(|count| **count > 0).count();
    text + &format!("LF:{}\nLH:{hit}\nend_of_record\n", lines.len())
}
