//! `list`: shows the targets from the cache alone, without a search.

use crate::arch::Arch;
use crate::cache::Cache;
use crate::error::WRITING;
use crate::kernel::{Compiler, Kernel};
use crate::source::Source;
use crate::system::System;
use crate::target::{Target, Targets};
use std::fmt::Write as _;

/// The maximum width of a line.
const WIDTH: usize = 80;

/// Returns one line for each target; with `verbose`, also the words that it
/// declares.
pub fn render(targets: &Targets, cache: &Cache, verbose: bool) -> String {
    let head = ["TARGET", "KIND", "SOURCE", "KERNEL"].map(String::from);
    let rows: Vec<_> = targets.all.iter().map(|target| row(target, targets, cache)).collect();
    let all = || std::iter::once(&head).chain(&rows);
    let widths: [usize; 4] =
        std::array::from_fn(|column| all().map(|row| row[column].len()).max().unwrap_or(0));
    let mut text = String::new();
    for (index, row) in all().enumerate() {
        let cells: Vec<_> =
            std::iter::zip(row, widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        writeln!(text, "{}", cells.join("  ").trim_end()).expect(WRITING);
        if verbose && index > 0 {
            words(&mut text, &targets.all[index - 1].declares);
        }
    }
    text + "* default\n"
}

fn row(target: &Target, targets: &Targets, cache: &Cache) -> [String; 4] {
    let known = Source::last_known(target, cache);
    let source = match &known {
        Some(Source::Package(package)) => package.short(),
        Some(source) => source.describe(),
        None if target.package.is_empty() => "-".into(),
        None => format!("{} ({})", target.package, target.suite),
    };
    let built = known.is_some_and(|source| {
        let Ok(Some(compiler)) = Compiler::last_known(target, cache) else { return false };
        let kernel = Kernel::cached(target, &source, &compiler, cache);
        matches!(kernel, Ok(Some(_)))
    });
    let built = match target.kind.system() {
        System::NetBsd => "--kernel",
        System::Linux if built => "built",
        System::Linux => "not built",
    };
    let defaults = targets.defaults(Arch::host());
    let mark = if defaults.iter().any(|it| it.name == target.name) { "*" } else { "" };
    [format!("{}{mark}", target.name), target.kind.name().into(), source, built.into()]
}

/// Lists a target's declared words, wrapped.
fn words(text: &mut String, words: &[String]) {
    const START: &str = "    declares";
    let mut line = START.to_string();
    for word in words {
        if line.len() + 1 + word.len() > WIDTH {
            writeln!(text, "{line}").expect(WRITING);
            line = " ".repeat(START.len());
        }
        write!(line, " {word}").expect(WRITING);
    }
    writeln!(text, "{line}").expect(WRITING);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_own_targets_fit_a_terminal() {
        let base = Path::new(env!("CARGO_MANIFEST_DIR"));
        let targets = Targets::load(&base.join("data/targets.toml")).expect("valid");
        let root = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(Some(root.path())).expect("a cache");
        let brief = render(&targets, &cache, false);
        let full = render(&targets, &cache, true);
        assert_eq!(brief.lines().count(), targets.all.len() + 2);
        let wide = |text: &str| text.lines().find(|line| line.len() > WIDTH).map(str::to_string);
        assert_eq!((wide(&brief), wide(&full)), (None, None));
        let declared: Vec<_> = targets.all.iter().flat_map(|target| &target.declares).collect();
        assert!(declared.iter().all(|word| full.contains(word.as_str())), "{full}");
        assert!(!brief.contains("declares") && full.contains("    declares linux kcov "), "{full}");
    }
}
