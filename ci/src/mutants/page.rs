//! Reports a campaign as text and as a page of the documentation.

use super::counts::{Counts, MEANINGS};
use super::known::Known;
use super::lockstep::{self, Score};
use super::record::{Entry, Lockstep, Outcome, Record};
use super::subject::Subject;
use kcov_vm::error::WRITING;
use std::fmt::Write as _;

/// Lists the results that contradict the data.
pub fn contradictions(record: &Record, known: &Known) -> Vec<String> {
    let mut all = Vec::new();
    for Entry { id, outcome, lockstep, .. } in &record.mutants {
        let noticed = matches!(outcome, Outcome::Killed { .. } | Outcome::Ended { .. });
        let by_lockstep = lockstep.as_ref().is_some_and(|seen| *seen != Lockstep::Agreed);
        if (noticed || by_lockstep) && known.subject.is_equivalent(id) {
            all.push(format!("NOT EQUIVALENT {id}"));
        } else if noticed && known.subject.excuse(id).is_some() {
            all.push(format!("NOT UNDETECTED {id}"));
        }
    }
    for entry in &record.named {
        let Some(named) = known.named(&entry.id) else { continue };
        let missing = |check: &&String| {
            !record.skipped.contains(check) && !record.red(entry).any(|red| red == **check)
        };
        // Without --whole, a run ends at its first red check.
        if !record.whole && !entry.outcome.red().is_empty() {
            continue;
        }
        for check in named.red.iter().filter(missing) {
            all.push(format!("NOT RED {check}, with {}", entry.id));
        }
    }
    all
}

/// Says whether the results are from the current suite.
fn age(record: &Record, suite: &str) -> String {
    match record.suite == suite {
        true => format!("These results are from the current suite (`{suite}`)."),
        false => format!(
            "**These results are old**: they are from the suite `{}`, which has changed since.",
            record.suite
        ),
    }
}

/// Says how long the campaign took, if it is known.
fn took(record: &Record) -> String {
    let time = |seconds: u64| {
        let minutes = seconds.div_ceil(60);
        format!("{} h {} min", minutes / 60, minutes % 60)
    };
    let part = |seconds: u64, what: &str| match seconds {
        0 => String::new(),
        _ => format!(" The {what} took {}.", time(seconds)),
    };
    part(record.mutants_seconds, "mutants") + &part(record.named_seconds, "named alterations")
}

fn undetected<'a>(record: &'a Record, known: &Known) -> Vec<&'a Entry> {
    let is_open = |entry: &&Entry| {
        entry.outcome == Outcome::Undetected && !known.subject.is_equivalent(&entry.id)
    };
    record.mutants.iter().filter(is_open).collect()
}

/// An alteration that turns more checks red than this breaks the whole device. It says little about
/// any one check.
const FEW: usize = 10;

/// Says how many checks have been seen to fail.
fn seen(record: &Record) -> String {
    let least =
        |check: &String| record.turned_red(check).first().map(|entry| entry.outcome.red().len());
    let least: Vec<usize> = record.checks.iter().filter_map(least).collect();
    format!(
        "{} of {} checks have been seen to fail, {} of them with an alteration that turned at most \
         {FEW} checks red. {} others do not run on the campaign's targets.",
        least.len(),
        record.checks.len(),
        least.iter().filter(|red| **red <= FEW).count(),
        record.skipped.len()
    )
}

/// Renders the text for a terminal.
pub fn text(record: &Record, known: &Known, suite: &str) -> String {
    let counts = Counts::of(record.mutants.iter(), known);
    let mut text = String::new();
    for ((name, _), number) in MEANINGS.iter().zip(counts.numbers()) {
        writeln!(text, "{number:5} {name}").expect(WRITING);
    }
    let tried = record.mutants.len();
    writeln!(text, "{tried:5} of {} mutants. {}", record.all, counts.score()).expect(WRITING);
    let age = age(record, suite).replace('*', "");
    writeln!(text, "{}\n{age}{}", seen(record), took(record)).expect(WRITING);
    writeln!(text, "{}", lockstep::describe(record, known)).expect(WRITING);
    for entry in undetected(record, known) {
        writeln!(text, "UNDETECTED {}", entry.id).expect(WRITING);
    }
    for what in contradictions(record, known) {
        writeln!(text, "{what}").expect(WRITING);
    }
    text
}

/// Renders the page of the documentation.
pub fn render(record: &Record, known: &Known, suite: &str) -> String {
    let Record { target, source, file, .. } = record;
    let Subject { title, page, options, kernel, .. } = &known.subject;
    let kernel = if kernel.is_empty() { String::new() } else { format!("{}\n\n", kernel.trim()) };
    let tried = record.mutants.len();
    let left = match record.all.saturating_sub(tried) {
        0 => String::new(),
        left => format!("**{left} of {} mutants have not been tried yet.** ", record.all),
    };
    let counts = Counts::of(record.mutants.iter(), known);
    let (whole, how_far) = match record.whole {
        true => (" --whole", "to the end of the suite"),
        false => ("", "until a check was red"),
    };
    let mut page = format!(
        "<!-- Generated by `cargo vm mutants {target}{options}{whole} --report \
         ci/mutants/{target}.json --page {page}`. Do not edit. -->\n\n\
         # {title}\n\n\
         Each mutant alters one place in `{file}` of {source}. {tried} mutants ran on `{target}`, \
         each {how_far}. An undetected mutant shows behavior that no check covers.\n\n\
         {kernel}{left}{}{}\n\n| | mutants | |\n|---|---:|---|\n",
        age(record, suite),
        took(record),
    );
    for ((name, meaning), number) in MEANINGS.iter().zip(counts.numbers()) {
        writeln!(page, "| {name} | {number} | {meaning} |").expect(WRITING);
    }
    writeln!(page, "| **all** | {tried} | |\n\n{}\n", counts.score()).expect(WRITING);
    writeln!(page, "{}\n", lockstep::describe(record, known)).expect(WRITING);
    let names = MEANINGS.map(|(name, _)| name).join(" | ");
    writeln!(page, "| function | {names} | lockstep |\n|---|{}", "---:|".repeat(7)).expect(WRITING);
    let mut functions: Vec<&str> = record.mutants.iter().map(|entry| &*entry.place).collect();
    functions.dedup();
    for name in functions {
        let own = || record.mutants.iter().filter(|entry| entry.place == name);
        let numbers = Counts::of(own(), known).numbers().map(|number| number.to_string());
        let lockstep = Score::of(own(), known).cell();
        writeln!(page, "| `{name}` | {} | {lockstep} |", numbers.join(" | ")).expect(WRITING);
    }
    page.push_str("\n## Undetected\n\n");
    for entry in undetected(record, known) {
        let excuse = known.subject.excuse(&entry.id).map_or(String::new(), |e| format!(". {e}"));
        writeln!(page, "- line {}: `{}`{excuse}", entry.line, entry.id).expect(WRITING);
    }
    let missed = |entry: &&Entry| entry.outcome == Outcome::Undetected;
    for entry in record.named.iter().filter(missed) {
        let why = known.named(&entry.id).and_then(|named| named.undetected.as_deref());
        let why = why.map_or(String::new(), |why| format!(". {why}"));
        writeln!(page, "- on {}: `{}`{why}", entry.on, entry.id).expect(WRITING);
    }
    page.push_str("\n## Equivalent\n");
    for remark in &known.subject.equivalent {
        writeln!(page, "\n{}\n", remark.because.trim()).expect(WRITING);
        remark.ids.iter().for_each(|id| writeln!(page, "- `{id}`").expect(WRITING));
    }
    if record.whole { page + &checks(record, &known.subject) } else { page }
}

/// Lists what has turned each check red.
fn checks(record: &Record, subject: &Subject) -> String {
    let library = if subject.library { " and `ci/mutants/library`" } else { "" };
    let mut page = format!(
        "\n## Checks\n\n{} For each check, the table names the alteration that turned it red \
         along with the fewest others, and their number. The alteration is a mutant, or one of \
         `ci/mutants/{}`{library}.\n\n\
         | check | turned red by | others |\n|---|---|---:|\n",
        seen(record),
        subject.named
    );
    let mut all: Vec<&String> = record.checks.iter().chain(&record.skipped).collect();
    all.sort();
    for check in all {
        let name = |entry: &Entry| format!("`{}`", entry.id.replace('|', "\\|"));
        let (by, red) = match (record.turned_red(check).first(), record.ended_during(check)) {
            (Some(entry), _) => (name(entry), entry.outcome.red().len() - 1),
            (None, Some(entry)) => (format!("the kernel ended it: {}", name(entry)), 0),
            _ if record.skipped.contains(check) => ("never seen to fail: not run".into(), 0),
            _ => ("never seen to fail".into(), 0),
        };
        writeln!(page, "| `{check}` | {by} | {red} |").expect(WRITING);
    }
    page
}
