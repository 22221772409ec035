//! `clean`: removes old files from the cache and reports the space that this frees.

use crate::cache::Cache;
use crate::error::{OrUnavailable as _, Phase, Result, WRITING};
use crate::kernel::{Compiler, Kernel};
use crate::source::Source;
use crate::target::Targets;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A younger run may still be active, and runs hold no lock.
const MAY_RUN: Duration = Duration::from_secs(24 * 60 * 60);

/// The names of the cache directories that the next build or run of any target needs.
#[derive(Default)]
struct Needed {
    sources: BTreeSet<String>,
    compilers: BTreeSet<String>,
    kernels: BTreeSet<String>,
}

impl Needed {
    fn of(targets: &Targets, cache: &Cache) -> Result<Self> {
        let mut needed = Self::default();
        for target in &targets.all {
            let known = Source::last_known(target, cache);
            let Some(source) = known else { continue };
            needed.sources.extend(source.directory());
            let Some(compiler) = Compiler::last_known(target, cache)? else { continue };
            if let Compiler::Package(package) = &compiler {
                needed.compilers.insert(package.directory());
            }
            let recipe = Kernel::recipe(target, &source, &compiler, cache)?;
            needed.kernels.insert(recipe.name);
        }
        Ok(needed)
    }
}

/// A directory to remove, and the lock of its users.
struct Old {
    path: PathBuf,
    lock: Option<String>,
    bytes: u64,
}

/// Removes directories older than `age`, or only lists them with `dry_run`. Returns the report.
pub fn run(targets: &Targets, cache: &Cache, age: Duration, dry_run: bool) -> Result<String> {
    let needed = Needed::of(targets, cache)?;
    let library = BTreeSet::from(["library".to_string()]);
    let benches: BTreeSet<_> = needed.kernels.union(&library).cloned().collect();
    let mut old = Vec::new();
    for (directory, keep, lock) in [
        (cache.sources(), &needed.sources, ""),
        (cache.compilers(), &needed.compilers, ""),
        (cache.kernels(), &needed.kernels, ""),
        (cache.benches(), &benches, "bench-"),
    ] {
        for (path, name) in older(&directory, age)? {
            // The final directory's lock also covers its temporary directory.
            let half = [".unpack-", ".build-"].iter().find_map(|begin| name.strip_prefix(begin));
            if half.is_some() || !keep.contains(&name) {
                let lock = Some(format!("{lock}{}", half.unwrap_or(&name)));
                old.push(Old { bytes: size(&path), path, lock });
            }
        }
    }
    for (target, _) in older(&cache.runs(), Duration::ZERO)? {
        let runs = older(&target, age.max(MAY_RUN))?;
        old.extend(runs.into_iter().map(|(path, _)| Old { bytes: size(&path), path, lock: None }));
    }
    let (mut text, mut freed) = (String::new(), 0);
    for Old { path, lock, bytes } in old {
        let held = lock.map(|name| cache.try_lock(&name));
        // Another process is using it.
        if matches!(held, Some(None)) {
            continue;
        }
        if !dry_run {
            fs::remove_dir_all(&path).or_unavailable(Phase::Output, path.display())?;
        }
        let shown = path.strip_prefix(cache.root()).unwrap_or(&path);
        writeln!(text, "{:>12}  {}", mebibytes(bytes), shown.display()).expect(WRITING);
        freed += bytes;
    }
    let what = if dry_run { "would be freed in" } else { "freed in" };
    writeln!(text, "{:>12}  {what} {}", mebibytes(freed), cache.root().display()).expect(WRITING);
    Ok(text)
}

/// Returns the subdirectories that have not changed for `age`, sorted by name.
fn older(directory: &Path, age: Duration) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).or_unavailable(Phase::Output, directory.display())? {
        let entry = entry.or_unavailable(Phase::Output, directory.display())?;
        // Another process may be removing it.
        let Ok(metadata) = entry.metadata() else { continue };
        let unchanged =
            metadata.modified().ok().and_then(|t| SystemTime::now().duration_since(t).ok());
        if metadata.is_dir() && unchanged.unwrap_or_default() >= age {
            found.push((entry.path(), entry.file_name().to_string_lossy().into_owned()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The space that removing it frees. Trees share files, so a hard link counts only its share.
fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let below = || Some(fs::read_dir(path).ok()?.flatten().map(|entry| size(&entry.path())).sum());
    if metadata.is_dir() {
        below().unwrap_or(0)
    } else {
        metadata.blocks() * 512 / metadata.nlink().max(1)
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that are left in a cache directory.
    fn left(directory: PathBuf) -> Vec<String> {
        let found = older(&directory, Duration::ZERO).expect("readable");
        found.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn what_targets_need_and_what_is_held_stays() {
        let base = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data"));
        let text = fs::read_to_string(base.join("targets.toml")).expect("a file");
        // Without the locked versions.
        let targets = Targets::parse(&text, base).expect("valid");
        let root = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(Some(root.path())).expect("a cache");
        let uml = targets.named("linux-uml").expect("a target");
        let package = r#"{"name":"linux-source-7.3","version":"7.3.4-1","suite":"s"}"#;
        let memory = cache.sources().join(format!("{}@{}.json", uml.package, uml.suite));
        fs::write(&memory, package).expect("a file");
        let needed = Needed::of(&targets, &cache).expect("known");
        let kernel = needed.kernels.iter().find(|name| name.starts_with("uml-")).expect("one");
        for (directory, name) in [
            (cache.sources(), "linux-source-7.3-7.3.4-1"),
            (cache.sources(), "linux-source-7.2-7.2.1-1"),
            (cache.sources(), ".unpack-linux-source-7.2-7.2.1-1"),
            (cache.sources(), "held"),
            (cache.kernels(), kernel),
            (cache.kernels(), "uml-000000000000"),
            (cache.kernels(), ".build-uml-000000000000"),
            (cache.benches(), "library"),
            (cache.benches(), "uml-000000000000"),
            (cache.runs(), "linux-uml/1-1"),
            (cache.runs(), "linux-uml/2-2"),
        ] {
            let path = directory.join(name);
            fs::create_dir_all(&path).expect("directories");
            fs::write(path.join("file"), [1; 8192]).expect("a file");
        }
        let over = fs::File::open(cache.runs().join("linux-uml/1-1")).expect("a directory");
        over.set_modified(SystemTime::now() - 2 * MAY_RUN).expect("its own");
        let _held = cache.lock(Phase::Source, "held").expect("free");

        let text = run(&targets, &cache, 3 * MAY_RUN, false).expect("none is that old");
        assert_eq!(text, format!("     0.0 MiB  freed in {}\n", cache.root().display()));
        let would = run(&targets, &cache, Duration::ZERO, true).expect("nothing is removed");
        assert!(would.contains("     0.0 MiB  kernels/uml-000000000000\n"), "{would}");
        assert_eq!(left(cache.sources()).len(), 4);
        assert_eq!(left(cache.runs().join("linux-uml")).len(), 2);

        let text = run(&targets, &cache, Duration::ZERO, false).expect("removed");
        assert_eq!(text.replace("freed in", "would be freed in"), would);
        assert_eq!(left(cache.sources()), ["held", "linux-source-7.3-7.3.4-1"]);
        assert_eq!(left(cache.kernels()), std::slice::from_ref(kernel));
        assert_eq!(left(cache.benches()), ["library"]);
        assert_eq!(left(cache.runs().join("linux-uml")), ["2-2"]);
        assert!(memory.exists());
    }

    #[test]
    fn names_of_one_file_are_counted_once() {
        let root = tempfile::tempdir().expect("a directory");
        fs::write(root.path().join("a"), vec![1; 1 << 20]).expect("a file");
        let one = size(root.path());
        assert!(one >= 1 << 20, "{one}");
        fs::hard_link(root.path().join("a"), root.path().join("b")).expect("a link");
        assert_eq!(size(root.path()), one);
    }
}
