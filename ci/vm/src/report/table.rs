//! Tables of checks by target and of the counts on each.

use super::text::word;
use super::{Run, TargetReport, Verdict};
use crate::error::WRITING;
use crate::verdict::{Counts, Outcome};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The cell for a missing result.
const NONE: &str = "·";

/// Formats both tables. Without `verbose`, the checks that are ok on every
/// target with results share one line.
pub fn render(run: &Run, verbose: bool) -> String {
    let columns: Vec<Column> = run.reports.iter().map(Column::of).collect();
    let mut ids: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for check in run.reports.iter().flat_map(TargetReport::checks) {
        if seen.insert(check.id.as_str()) {
            ids.push(&check.id);
        }
    }
    let plain = |id: &&str| {
        let telling = columns.iter().filter(|column| column.tells);
        telling.clone().count() > 0 && telling.map(|column| column.cell(id)).all(|c| c == "ok")
    };
    let folded = if verbose { 0 } else { ids.iter().filter(|id| plain(id)).count() };
    let shown: Vec<_> = ids.into_iter().filter(|id| verbose || !plain(id)).collect();

    let mut text = String::from("\n");
    if !shown.is_empty() {
        grid(&mut text, &shown, &columns);
    }
    if folded > 0 {
        let checks = if folded == 1 { "check is" } else { "checks are" };
        writeln!(text, "{folded} {checks} ok on every target that runs any").expect(WRITING);
    }
    text.push('\n');
    counts(&mut text, run);
    text
}

/// A target's results.
struct Column<'a> {
    name: Vec<&'a str>,
    cells: HashMap<&'a str, &'static str>,
    /// Whether any check ran there.
    tells: bool,
}

impl<'a> Column<'a> {
    fn of(report: &'a TargetReport) -> Self {
        let checks = report.checks();
        Self {
            name: report.target.split('-').collect(),
            cells: checks.iter().map(|c| (c.id.as_str(), word(&c.outcome))).collect(),
            tells: checks.iter().any(|c| !matches!(c.outcome, Outcome::Skip { .. })),
        }
    }

    fn cell(&self, id: &str) -> &'static str {
        self.cells.get(id).copied().unwrap_or(NONE)
    }

    fn width(&self) -> usize {
        self.name.iter().map(|part| part.len()).max().unwrap_or(0).max("xfail".len())
    }
}

/// The names are long, so each is split over several lines above its column.
fn grid(text: &mut String, ids: &[&str], columns: &[Column<'_>]) {
    let first = ids.iter().map(|id| id.len()).max().unwrap_or(0).max("check".len());
    let mut line = |start: &str, cells: Vec<&str>| {
        let mut line = format!("{start:<first$}");
        for (cell, column) in cells.iter().zip(columns) {
            write!(line, "  {cell:<width$}", width = column.width()).expect(WRITING);
        }
        writeln!(text, "{}", line.trim_end()).expect(WRITING);
    };
    let height = columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
    for row in 0..height {
        let start = if row + 1 == height { "check" } else { "" };
        let parts = columns.iter().map(|column| column.name.get(row).copied().unwrap_or(""));
        line(start, parts.collect());
    }
    for id in ids {
        line(id, columns.iter().map(|column| column.cell(id)).collect());
    }
}

fn counts(text: &mut String, run: &Run) {
    let names = run.reports.iter().map(|report| report.target.len());
    let width = names.max().unwrap_or(0).max("target".len());
    writeln!(text, "{:<width$}  passed  failed  xfail  skipped  seconds", "target").expect(WRITING);
    for report in &run.reports {
        write!(text, "{:<width$}", report.target).expect(WRITING);
        match &report.verdict {
            Verdict::Checks(checks) => {
                let Counts { passed, failed, xfailed, skipped } = Counts::of(checks);
                let wall = report.wall.as_secs_f32();
                write!(text, "  {passed:>6}  {failed:>6}  {xfailed:>5}  {skipped:>7}  {wall:>7.1}")
                    .expect(WRITING);
            }
            Verdict::None(why) => {
                write!(text, "  none: {}: {}", why.phase, why.message).expect(WRITING);
            }
            Verdict::NotRun(what) => write!(text, "  not run: {what}").expect(WRITING),
        }
        text.push('\n');
    }
    writeln!(text, "{:.1} s", run.wall.as_secs_f32()).expect(WRITING);
}
