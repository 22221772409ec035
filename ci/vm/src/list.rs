//! `list`: shows the targets from the cache alone, without a search.

use crate::arch::Arch;
use crate::cache::Cache;
use crate::kernel::{Compiler, Kernel};
use crate::source::Source;
use crate::system::System;
use crate::target::{Target, Targets};

/// Returns one line for each target.
pub fn render(targets: &Targets, cache: &Cache) -> String {
    let head = ["TARGET", "KIND", "SOURCE", "KERNEL"].map(String::from);
    let rows: Vec<_> = targets.all.iter().map(|target| row(target, targets, cache)).collect();
    let all = || std::iter::once(&head).chain(&rows);
    let widths: [usize; 4] =
        std::array::from_fn(|column| all().map(|row| row[column].len()).max().unwrap_or(0));
    let mut text = String::new();
    for row in all() {
        let cells: Vec<_> =
            std::iter::zip(row, widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += &format!("{}\n", cells.join("  ").trim_end());
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
        let text = render(&targets, &cache);
        assert_eq!(text.lines().count(), targets.all.len() + 2);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
