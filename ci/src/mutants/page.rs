//! The score: as text, and as a page of the documentation.

use super::record::{Entry, Outcome, Record};
use super::subject::Subject;
use crate::error::WRITING;
use std::fmt::Write as _;

/// How many mutants went which way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// A check went red.
    pub killed: usize,
    /// The kernel did not survive.
    pub crashed: usize,
    /// Green, and nobody has said why.
    pub survived: usize,
    /// The compiler makes the same code of them.
    pub same: usize,
    /// Green, and it is said why.
    pub equivalent: usize,
    /// Said to be equivalent, and noticed.
    pub stale: usize,
    /// They do not compile.
    pub invalid: usize,
}

impl Counts {
    /// Counts entries.
    pub fn of<'a>(entries: impl Iterator<Item = &'a Entry>, subject: &Subject) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            let listed = subject.equivalent(&entry.id).is_some();
            match entry.outcome {
                Outcome::Killed { .. } | Outcome::Crashed { .. } if listed => counts.stale += 1,
                Outcome::Killed { .. } => counts.killed += 1,
                Outcome::Crashed { .. } => counts.crashed += 1,
                Outcome::Survived if listed => counts.equivalent += 1,
                Outcome::Survived => counts.survived += 1,
                Outcome::SameCode => counts.same += 1,
                Outcome::Invalid { .. } => counts.invalid += 1,
            }
        }
        counts
    }

    /// Mutants that can be noticed.
    fn telling(self) -> usize {
        self.killed + self.crashed + self.stale + self.survived
    }

    /// How many of these are, in percent.
    fn score(self) -> f64 {
        let noticed = self.telling() - self.survived;
        noticed as f64 * 100.0 / self.telling().max(1) as f64
    }
}

/// Functions in the order of the file, and what became of their mutants.
fn by_function<'a>(record: &'a Record, subject: &Subject) -> Vec<(&'a str, Counts)> {
    let mut names: Vec<&str> = record.mutants.iter().map(|entry| &*entry.function).collect();
    names.dedup();
    let of = |name: &str| {
        Counts::of(record.mutants.iter().filter(|entry| entry.function == name), subject)
    };
    names.into_iter().map(|name| (name, of(name))).collect()
}

fn row(name: &str, counts: Counts) -> [String; 8] {
    let Counts { killed, crashed, survived, same, equivalent, stale, invalid } = counts;
    let numbers = [killed + stale, crashed, survived, equivalent, same, invalid];
    let score = if counts.telling() == 0 { "-".into() } else { format!("{:.1} %", counts.score()) };
    let mut cells = numbers.map(|number| number.to_string()).into_iter();
    let mut next = || cells.next().unwrap_or_default();
    [name.into(), next(), next(), next(), next(), next(), next(), score]
}

const HEAD: [&str; 8] =
    ["function", "killed", "crashed", "survived", "equivalent", "same code", "invalid", "score"];

/// For people at a terminal.
pub fn text(record: &Record, subject: &Subject) -> String {
    let mut rows = vec![HEAD.map(String::from)];
    rows.extend(by_function(record, subject).into_iter().map(|(name, c)| row(name, c)));
    rows.push(row("all", Counts::of(record.mutants.iter(), subject)));
    let mut text = String::new();
    let widths: Vec<usize> =
        (0..8).map(|c| rows.iter().map(|row| row[c].len()).max().unwrap_or(0)).collect();
    for row in &rows {
        let cells =
            row.iter().zip(&widths).enumerate().map(|(index, (cell, &width))| match index {
                0 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            });
        writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ")).expect(WRITING);
    }
    for entry in &record.mutants {
        let listed = subject.equivalent(&entry.id).is_some();
        match &entry.outcome {
            Outcome::Survived if !listed => writeln!(text, "SURVIVED {}", entry.id),
            Outcome::Killed { .. } | Outcome::Crashed { .. } if listed => {
                writeln!(text, "NOT EQUIVALENT {}", entry.id)
            }
            _ => Ok(()),
        }
        .expect(WRITING);
    }
    text
}

/// A page about a part says so.
fn not_tried(record: &Record) -> String {
    match record.all.saturating_sub(record.mutants.len()) {
        0 => String::new(),
        left => format!("**{left} of {} mutants have not been tried yet.**\n\n", record.all),
    }
}

/// For the documentation.
pub fn render(record: &Record, subject: &Subject) -> String {
    let counts = Counts::of(record.mutants.iter(), subject);
    let mut page = format!(
        "<!-- Made by `cargo vm mutants {target} --report ci/mutants/{target}.json \
         --page docs/src/mutants.md`. Do not edit. -->\n\n\
         # Mutants\n\n\
         The driver `{file}` of {source} with one place altered, {count} times, under the suite on \
         `{target}`: a mutant that no check notices is a promise that nobody checks.\n\n{left}",
        left = not_tried(record),
        target = record.target,
        file = record.file,
        source = record.source,
        count = record.mutants.len(),
    );
    page.push_str(
        "**Killed**: a check went red. **Crashed**: the kernel panicked, complained or hung. \
         **Survived**: the suite is green. **Equivalent**: green, and the reason stands below. \
         **Same code**: the compiler makes the same of it as of the original. **Invalid**: it does \
         not compile. The score is what is noticed, killed or crashed, of all that could be.\n\n",
    );
    writeln!(page, "| {} |\n|---|{}", HEAD.join(" | "), "---:|".repeat(7)).expect(WRITING);
    for (name, counts) in by_function(record, subject) {
        writeln!(page, "| {} |", row(&format!("`{name}`"), counts).join(" | ")).expect(WRITING);
    }
    writeln!(page, "| {} |", row("**all**", counts).join(" | ")).expect(WRITING);
    let survivors: Vec<&Entry> = record
        .mutants
        .iter()
        .filter(|e| e.outcome == Outcome::Survived && subject.equivalent(&e.id).is_none())
        .collect();
    if !survivors.is_empty() {
        page.push_str("\n## Survivors\n\n");
        for entry in survivors {
            write!(page, "- line {}: `{}`", entry.line, entry.id).expect(WRITING);
            if let Some(why) = subject.missed(&entry.id) {
                write!(page, ". {why}").expect(WRITING);
            }
            page.push('\n');
        }
    }
    page.push_str("\n## Equivalent\n");
    for entry in &subject.equivalent {
        writeln!(page, "\n{}\n", entry.reason.trim()).expect(WRITING);
        for id in &entry.ids {
            writeln!(page, "- `{id}`").expect(WRITING);
        }
    }
    page
}
