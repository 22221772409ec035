//! The tables of the page of costs, for its charts.

use super::section;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../../docs/src/cost.md");

/// The first table under a heading: for each row its cells, by column.
pub(super) fn table(heading: &str) -> Vec<BTreeMap<&'static str, &'static str>> {
    let is_row = |line: &&str| line.starts_with('|');
    let lines = section(PAGE, heading).lines().skip_while(|line| !is_row(line)).take_while(is_row);
    // The line below the names begins with `|-`.
    let mut rows = lines.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let names = rows.next().unwrap_or_else(|| panic!("cost.md: no table under `{heading}`"));
    rows.map(|row| names.split(" | ").zip(row.split(" | ")).collect()).collect()
}
