//! Prints and writes the reports.

pub mod folded;
pub mod lcov;

use crate::coverage::{Coverage, Thread};
use crate::symbols::{Frame, Place, Symbols};
use clap::Args;
use kcov::Pc;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The output on standard output.
#[derive(Args, Debug, Default)]
#[group(multiple = false)]
pub struct Style {
    /// Print a line for each program counter, with inlined functions, instead of each function
    #[arg(long)]
    pub lines: bool,
    /// Print the recorded program counters
    #[arg(long)]
    pub pcs: bool,
    /// Print nothing
    #[arg(long)]
    pub quiet: bool,
}

/// A program counter, its count and its place.
type Found = (Pc, u64, Place);

/// The work that no trace has, and why.
const NEVER: &str =
    "interrupts, softirqs and work queues: the kernel does not record for whom they work";

/// What a traced call of ptrace(2) means.
const PTRACE: &str = "the command called ptrace(2): a thread has one tracer, so it cannot attach \
                      to the threads traced here";

/// The totals of a function.
struct Function {
    records: u64,
    pcs: usize,
    /// Whether only the kernel's workers executed it.
    background: bool,
    /// The place of its first program counter.
    place: Place,
}

/// Writes the coverage as text.
pub fn write(
    coverage: &Coverage,
    symbols: &Symbols,
    style: &Style,
    text: &mut dyn Write,
) -> io::Result<()> {
    if style.quiet {
        return Ok(());
    }
    let threads = &coverage.threads;
    for thread in threads {
        writeln!(text, "{}", summary(thread))?;
    }
    if threads.iter().any(|thread| thread.truncated) {
        writeln!(text, "a truncated thread's buffer was full: enlarge it with --words N")?;
    }
    for why in coverage.missing.iter().map(String::as_str).chain([NEVER]) {
        writeln!(text, "not traced: {why}")?;
    }
    if style.pcs {
        return coverage.total().iter().try_for_each(|(pc, _)| writeln!(text, "{pc}"));
    }
    let found = find(coverage.total(), symbols, coverage);
    if found.iter().any(|(_, _, place)| place.symbol.ends_with("sys_ptrace")) {
        writeln!(text, "{PTRACE}")?;
    }
    let root = root(&found);
    let kernel = &coverage.kernel.release;
    let threads = threads.iter().filter(|thread| thread.process != 0);
    let own: HashSet<Pc> = threads.flat_map(|thread| &thread.counts).map(|(pc, _)| *pc).collect();
    if !style.lines {
        return functions(&found, &own, kernel, &root, text);
    }
    writeln!(text, "{} program counters of Linux {kernel}", found.len())?;
    below(&root, text)?;
    for (pc, records, place) in &found {
        let mark = mark(!own.contains(pc));
        writeln!(text, "{pc} {records:>8} {place}{mark}")?;
        for (depth, frame) in place.frames.iter().enumerate() {
            let inlined = if depth == 0 { "" } else { "into " };
            writeln!(text, "    {inlined}{}{}", frame.function, at(frame, &root))?;
        }
    }
    Ok(())
}

/// Finds the places of program counters.
fn find(all: Vec<(Pc, u64)>, symbols: &Symbols, coverage: &Coverage) -> Vec<Found> {
    let pcs: Vec<Pc> = all.iter().map(|(pc, _)| *pc).collect();
    let places = symbols.look_up(&pcs, coverage);
    all.into_iter().zip(places).map(|((pc, records), place)| (pc, records, place)).collect()
}

/// Marks what only the kernel's workers executed.
fn mark(background: bool) -> &'static str {
    if background { " (background)" } else { "" }
}

/// The deepest common directory of all files.
fn root(found: &[Found]) -> PathBuf {
    let mut files = found.iter().flat_map(|(_, _, place)| &place.frames).filter_map(file);
    let Some(mut root) = files.next().and_then(Path::parent) else { return PathBuf::new() };
    for file in files {
        root = root.ancestors().find(|above| file.starts_with(above)).unwrap_or(Path::new(""));
    }
    root.to_owned()
}

fn below(root: &Path, text: &mut dyn Write) -> io::Result<()> {
    match root.file_name() {
        Some(_) => writeln!(text, "files are below {}", root.display()),
        None => Ok(()),
    }
}

/// Formats a space, the file and the line.
fn at(frame: &Frame, root: &Path) -> String {
    let Some((file, at)) = &frame.line else { return String::new() };
    format!(" {}:{at}", file.strip_prefix(root).unwrap_or(file).display())
}

fn summary(thread: &Thread) -> String {
    let Thread { process, number, records, name, .. } = thread;
    let pcs = thread.counts.len();
    let truncated = if thread.truncated { ", truncated" } else { "" };
    let who = match process {
        0 => name.clone(),
        _ => format!("process {process} thread {number} {name}"),
    };
    format!("{who}: {records} records, {pcs} program counters{truncated}")
}

fn functions(
    found: &[Found],
    own: &HashSet<Pc>,
    kernel: &str,
    root: &Path,
    text: &mut dyn Write,
) -> io::Result<()> {
    let mut all: HashMap<String, Function> = HashMap::new();
    for (pc, records, place) in found {
        let name = match &*place.symbol {
            "" => "??".to_owned(),
            symbol => symbol.to_owned(),
        };
        // The start address distinguishes static functions with the same name.
        let key = format!("{name} {:#x}", pc.address().wrapping_sub(place.offset));
        let key = if name == "??" { name } else { key };
        let first = || Function { records: 0, pcs: 0, background: true, place: place.clone() };
        let function = all.entry(key).or_insert_with(first);
        function.background &= !own.contains(pc);
        function.records += records;
        function.pcs += 1;
    }
    let frames = all.values().filter_map(|function| function.place.frames.last());
    let files: BTreeSet<_> = frames.filter_map(file).collect();
    let mut counted = format!("{} program counters in {} functions", found.len(), all.len());
    if !files.is_empty() {
        counted += &format!(" of {} files", files.len());
    }
    writeln!(text, "{counted} of Linux {kernel}")?;
    below(root, text)?;
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|(a_key, a), (b_key, b)| b.records.cmp(&a.records).then_with(|| a_key.cmp(b_key)));
    writeln!(text, "{:>10} {:>6}  function", "records", "pcs")?;
    for (_, Function { records, pcs, background, place }) in &all {
        let name = if place.symbol.is_empty() { "??" } else { &place.symbol };
        let at = place.frames.last().map_or_else(String::new, |frame| at(frame, root));
        writeln!(text, "{records:>10} {pcs:>6}  {name}{at}{}", mark(*background))?;
    }
    Ok(())
}

fn file(frame: &Frame) -> Option<&Path> {
    Some(&frame.line.as_ref()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    fn render(coverage: &Coverage, symbols: &Symbols, style: &str) -> String {
        let (lines, pcs) = (style == "lines", style == "pcs");
        let (mut text, style) = (Vec::new(), Style { lines, pcs, ..Style::default() });
        write(coverage, symbols, &style, &mut text).expect("memory");
        String::from_utf8(text).expect("UTF-8")
    }

    fn coverage() -> Coverage {
        let mut thread = Thread { process: 1, number: 2, name: "ls".into(), ..Thread::default() };
        thread.count([0x1015, 0x1025, 0x1015, 0x2015].into_iter().map(Pc::new));
        Coverage {
            kernel: Kernel { release: "7.3".into(), ..Kernel::default() },
            slide: Some(0),
            threads: vec![thread],
            ..Coverage::default()
        }
    }

    fn symbols() -> Symbols {
        let names = [(0x1000, "read"), (0x2000, "write"), (0x3000, "_etext")];
        Symbols::Listed(names.map(|(address, name)| (address, name.into())).into())
    }

    #[test]
    fn functions_are_sorted_by_their_records() {
        let text = render(&coverage(), &symbols(), "functions");
        let expected = "\
process 1 thread 2 ls: 4 records, 3 program counters
not traced: interrupts, softirqs and work queues: the kernel does not record for whom they work
3 program counters in 2 functions of Linux 7.3
   records    pcs  function
         3      2  read
         1      1  write
";
        assert_eq!(text, expected);
    }

    #[test]
    fn lines_and_pcs_have_one_line_each() {
        let text = render(&coverage(), &symbols(), "lines");
        assert!(text.contains("0x1015        2 read+0x14\n"), "{text}");
        let text = render(&coverage(), &symbols(), "pcs");
        assert!(text.ends_with("\n0x1015\n0x1025\n0x2015\n"), "{text}");
    }

    #[test]
    fn work_in_the_background_is_marked_and_missing_work_named() {
        let mut all = coverage();
        let mut worker = Thread { name: "background".into(), ..Thread::default() };
        worker.count([0x1015, 0x2035].into_iter().map(Pc::new));
        all.threads.push(worker);
        all.missing.push("thread 7 (ls): why".into());
        let names = [(0x1000, "read"), (0x2030, "__x64_sys_ptrace"), (0x3000, "_etext")];
        let names = names.map(|(address, name)| (address, name.to_owned()));
        let text = render(&all, &Symbols::Listed(names.into()), "functions");
        for line in [
            "background: 2 records, 2 program counters",
            "not traced: thread 7 (ls): why",
            "         5      3  read",
            "         1      1  __x64_sys_ptrace (background)",
        ] {
            assert!(text.lines().any(|found| found == line), "`{line}` is not in: {text}");
        }
        assert!(text.contains("the command called ptrace(2)"), "{text}");
        assert!(!render(&all, &symbols(), "functions").contains("ptrace"));
        let text = render(&all, &symbols(), "lines");
        assert!(text.contains(" write+0x34 (background)\n"), "{text}");
    }

    #[test]
    fn paths_begin_where_they_differ() {
        let frame =
            |path: &str| Frame { function: "f".into(), line: Some((Path::new(path).into(), 7)) };
        let found = |frames: &[Frame]| {
            let place = Place { frames: frames.to_vec(), ..Place::default() };
            (Pc::new(1), 1, place)
        };
        let (inlined, other) = (frame("/src/linux/include/a.h"), frame("/src/linux/fs/b.c"));
        let all = [found(&[inlined.clone(), other.clone()]), found(&[other])];
        assert_eq!(root(&all), Path::new("/src/linux"));
        assert_eq!(at(&inlined, &root(&all)), " include/a.h:7");
        assert_eq!(root(&all[1..]), Path::new("/src/linux/fs"));
        assert_eq!(root(&[found(&[])]), Path::new(""));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let mut unknown = coverage();
        unknown.slide = None;
        let text = render(&unknown, &symbols(), "functions");
        assert!(text.contains("         4      3  ??\n"), "{text}");
        unknown.threads[0].truncated = true;
        let text = render(&unknown, &symbols(), "pcs");
        assert!(text.contains(", truncated\n") && text.contains("--words N"), "{text}");
    }
}
