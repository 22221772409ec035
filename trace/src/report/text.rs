//! For people.

use super::Style;
use crate::coverage::{Coverage, Thread};
use crate::symbols::{Place, Symbols};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

/// What a function adds up to.
struct Function {
    records: u64,
    pcs: usize,
    /// Of its first program counter.
    place: Place,
}

/// The coverage as text.
pub fn render(coverage: &Coverage, symbols: &Symbols, style: Style) -> String {
    let mut text = String::new();
    if style == Style::Quiet {
        return text;
    }
    let threads = &coverage.threads;
    for thread in threads {
        line(&mut text, format_args!("{}", summary(thread)));
    }
    if threads.iter().any(|thread| thread.truncated) {
        let advice = "a truncated thread's buffer was full: --words N makes it larger";
        line(&mut text, format_args!("{advice}"));
    }
    let total = coverage.total();
    let (count, kernel) = (total.len(), &coverage.kernel);
    match style {
        Style::Functions => functions(coverage, symbols, &mut text),
        Style::Lines => {
            line(&mut text, format_args!("{count} program counters of Linux {kernel}"));
            for (pc, records) in &total {
                let place = symbols.look_up(*pc, coverage);
                line(&mut text, format_args!("{pc} {records:>8} {place}"));
                for (depth, frame) in place.frames.iter().enumerate() {
                    let inlined = if depth == 0 { "" } else { "into " };
                    line(&mut text, format_args!("    {inlined}{frame}"));
                }
            }
        }
        Style::Quiet => {}
        Style::Pcs => {
            for (pc, _) in &total {
                line(&mut text, format_args!("{pc}"));
            }
        }
    }
    text
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("writing to a string cannot fail");
}

fn summary(thread: &Thread) -> String {
    let Thread { process, number, records, name, .. } = thread;
    let pcs = thread.counts.len();
    let truncated = if thread.truncated { ", truncated" } else { "" };
    format!(
        "process {process} thread {number} {name}: {records} records, {pcs} program \
         counters{truncated}"
    )
}

fn functions(coverage: &Coverage, symbols: &Symbols, text: &mut String) {
    let mut all: HashMap<String, Function> = HashMap::new();
    let total = coverage.total();
    for (pc, records) in &total {
        let place = symbols.look_up(*pc, coverage);
        let name = match place.symbol.as_str() {
            "" => "??".to_owned(),
            symbol => symbol.to_owned(),
        };
        // Static functions of one name are told apart by where they begin.
        let key = format!("{name} {:#x}", pc.address().wrapping_sub(place.offset));
        let key = if name == "??" { name } else { key };
        let function = all.entry(key).or_insert(Function { records: 0, pcs: 0, place });
        function.records += records;
        function.pcs += 1;
    }
    let files: BTreeSet<_> = all.values().filter_map(|function| file(&function.place)).collect();
    let mut counted = format!("{} program counters in {} functions", total.len(), all.len());
    if !files.is_empty() {
        write!(counted, " of {} files", files.len()).expect("writing to a string cannot fail");
    }
    line(text, format_args!("{counted} of Linux {}", coverage.kernel));
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|(a_key, a), (b_key, b)| b.records.cmp(&a.records).then_with(|| a_key.cmp(b_key)));
    line(text, format_args!("{:>10} {:>6}  function", "records", "pcs"));
    for (_, Function { records, pcs, place }) in &all {
        let name = if place.symbol.is_empty() { "??" } else { &place.symbol };
        let at = place.frames.last().and_then(|frame| frame.line.as_ref());
        let at = at.map_or_else(String::new, |(file, at)| format!("  {}:{at}", file.display()));
        line(text, format_args!("{records:>10} {pcs:>6}  {name}{at}"));
    }
}

fn file(place: &Place) -> Option<&std::path::Path> {
    Some(place.frames.last()?.line.as_ref()?.0.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kcov::Pc;

    fn coverage() -> Coverage {
        let mut thread = Thread { process: 1, number: 2, name: "ls".into(), ..Thread::default() };
        thread.count([0x1015, 0x1025, 0x1015, 0x2015].into_iter().map(Pc::new));
        Coverage {
            kernel: "7.3".into(),
            slide: Some(0),
            threads: vec![thread],
            ..Coverage::default()
        }
    }

    fn symbols() -> Symbols {
        Symbols::Listed(vec![(0x1000, "read".into()), (0x2000, "write".into())])
    }

    #[test]
    fn functions_are_sorted_by_their_records() {
        let text = render(&coverage(), &symbols(), Style::Functions);
        let expected = "\
process 1 thread 2 ls: 4 records, 3 program counters
3 program counters in 2 functions of Linux 7.3
   records    pcs  function
         3      2  read
         1      1  write
";
        assert_eq!(text, expected);
    }

    #[test]
    fn lines_and_pcs_have_one_line_each() {
        let text = render(&coverage(), &symbols(), Style::Lines);
        assert!(text.contains("0x1015        2 read+0x10\n"), "{text}");
        let text = render(&coverage(), &symbols(), Style::Pcs);
        assert!(text.ends_with("\n0x1015\n0x1025\n0x2015\n"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let mut unknown = coverage();
        unknown.slide = None;
        let text = render(&unknown, &symbols(), Style::Functions);
        assert!(text.contains("         4      3  ??\n"), "{text}");
        unknown.threads[0].truncated = true;
        let text = render(&unknown, &symbols(), Style::Pcs);
        assert!(text.contains(", truncated\n") && text.contains("--words N"), "{text}");
    }
}
