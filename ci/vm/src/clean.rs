//! `clean`: removes from the cache what was not used for some time, and reports the space that this
//! frees. A directory's time of modification is that of its last use.

use crate::cache::Cache;
use crate::error::{OrUnavailable as _, Phase, Result};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A younger run may still be active, and runs hold no lock.
const MAY_RUN: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes directories older than `age`, or only lists them with `dry_run`. Returns the report.
pub fn run(cache: &Cache, age: Duration, dry_run: bool) -> Result<String> {
    // Directories to remove, and the locks of their users.
    let mut old: Vec<(PathBuf, Option<String>)> = Vec::new();
    for (directory, lock) in [
        (cache.sources(), ""),
        (cache.compilers(), ""),
        (cache.kernels(), ""),
        (cache.benches(), "bench-"),
    ] {
        for (path, name) in older(&directory, age)? {
            // The final directory's lock also covers its temporary directory.
            let half = [".unpack-", ".build-"].iter().find_map(|begin| name.strip_prefix(begin));
            old.push((path, Some(format!("{lock}{}", half.unwrap_or(&name)))));
        }
    }
    for (target, _) in older(&cache.runs(), Duration::ZERO)? {
        let runs = older(&target, age.max(MAY_RUN))?;
        old.extend(runs.into_iter().map(|(path, _)| (path, None)));
    }
    let (mut text, mut freed) = (String::new(), 0);
    for (path, lock) in old {
        let held = lock.map(|name| cache.try_lock(&name));
        // Another process is using it.
        if matches!(held, Some(None)) {
            continue;
        }
        let bytes = size(&path);
        if !dry_run {
            fs::remove_dir_all(&path).or_unavailable(Phase::Output, path.display())?;
        }
        let shown = path.strip_prefix(cache.root()).unwrap_or(&path);
        text += &format!("{:>12}  {}\n", mebibytes(bytes), shown.display());
        freed += bytes;
    }
    let what = if dry_run { "would be freed in" } else { "freed in" };
    Ok(text + &format!("{:>12}  {what} {}\n", mebibytes(freed), cache.root().display()))
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
    use crate::cache;

    #[test]
    fn what_was_used_lately_and_what_is_held_stays() {
        let root = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(Some(root.path())).expect("a cache");
        let paths = [
            cache.sources().join("linux-source-7.2-7.2.1-1"),
            cache.sources().join(".unpack-linux-source-7.2-7.2.1-1"),
            cache.sources().join("held"),
            cache.kernels().join("uml-000000000000"),
            cache.kernels().join("uml-used"),
            cache.benches().join("uml-000000000000"),
            cache.runs().join("linux-uml/1-1"),
        ];
        for path in &paths {
            fs::create_dir_all(path).expect("directories");
            fs::write(path.join("file"), [1; 8192]).expect("a file");
            let directory = fs::File::open(path).expect("a directory");
            directory.set_modified(SystemTime::now() - 2 * MAY_RUN).expect("its own");
        }
        fs::create_dir(cache.runs().join("linux-uml/2-2")).expect("a directory");
        cache::touch(&cache.kernels().join("uml-used"));
        let _held = cache.lock(Phase::Source, "held").expect("free");
        let left = || paths.iter().filter(|path| path.exists()).count();

        let text = run(&cache, 3 * MAY_RUN, false).expect("none is that old");
        assert_eq!(text, format!("     0.0 MiB  freed in {}\n", cache.root().display()));
        let would = run(&cache, MAY_RUN, true).expect("nothing is removed");
        assert!(would.contains("     0.0 MiB  kernels/uml-000000000000\n"), "{would}");
        assert_eq!(left(), paths.len());
        let text = run(&cache, MAY_RUN, false).expect("removed");
        assert_eq!(text.replace("freed in", "would be freed in"), would);
        assert_eq!(left(), 2);
        assert!(paths[2].exists() && paths[4].exists());
        assert!(cache.runs().join("linux-uml/2-2").exists());
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
