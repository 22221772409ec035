//! Tests which files are carried, skipped or refused.

use super::*;
use crate::cache::Cache;
use crate::cpio::Archive;
use std::os::unix::fs::symlink;

#[test]
fn a_tree_comes_without_histories_and_caches() {
    let root = tempfile::tempdir().expect("a directory");
    let path = |name: &str| root.path().join(name);
    for directory in [".git", "target", "data"] {
        fs::create_dir(path(directory)).expect("a directory");
    }
    for file in [".git/config", "target/CACHEDIR.TAG", "target/large", "data/seed"] {
        fs::write(path(file), file).expect("a file");
    }
    symlink("data/seed", path("link")).expect("a link");
    let mut carried = Carried::default();
    carried.add(root.path()).expect("carried");
    let below = |at: &String| at.strip_prefix(root.path().to_str()?).map(str::to_string);
    let all: Vec<_> = carried.entries.keys().filter_map(below).collect();
    assert_eq!(all, ["", "/data", "/data/seed", "/link"]);
    assert_eq!(carried.bytes(), "data/seed".len() as u64);
    assert!(carried.has(&path("data")) && !carried.has(&path("target")));
    assert_eq!(carried.library_path(), None);
}

#[test]
fn the_runners_own_cache_stays_out() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = Cache::open(Some(&root.path().join(".cache/kcov-vm"))).expect("a cache");
    for directory in [cache.sources(), cache.kernels(), cache.programs(), cache.runs()] {
        fs::write(directory.join("large"), "").expect("a file");
    }
    let mut carried = Carried::default();
    carried.add(root.path()).expect("carried");
    assert!(!carried.entries.keys().any(|at| at.ends_with("/large")), "{:?}", carried.entries);
}

#[test]
fn a_dynamic_program_comes_with_its_libraries() {
    let own = std::env::current_exe().expect("this program");
    let mut carried = Carried::default();
    carried.add(&own).expect("carried");
    let names: Vec<_> = carried.entries.keys().filter_map(|at| at.rsplit('/').next()).collect();
    assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("ld-linux")), "{names:?}");
    assert!(carried.library_path().is_some());
}

#[test]
fn what_is_too_large_is_refused_unread() {
    let root = tempfile::tempdir().expect("a directory");
    let file = fs::File::create(root.path().join("large")).expect("a file");
    file.set_len(MOST + 1).expect("a hole");
    let why = Carried::default().add(root.path()).expect_err("refused");
    assert!(why.contains("512 MiB") && why.contains("large; ") && why.contains("carry only what"));
}

#[test]
fn what_a_guest_has_itself_is_refused() {
    for (path, word) in [("/proc/version", "its own /proc"), ("/", "cannot"), ("/a/../b", "`..`")] {
        let why = place(Path::new(path)).expect_err("refused");
        assert!(why.contains(word), "{path}: {why}");
    }
    let why = Carried::default().add(Path::new("/none/there")).expect_err("refused");
    assert!(why.starts_with("/none/there: "), "{why}");
}

#[test]
fn directories_are_made_once_and_before_what_is_in_them() {
    let mut carried = Carried::default();
    carried.directory("/a/b/c", 0o1777);
    let (mut archive, mut made) = (Archive::default(), BTreeSet::new());
    carried.write(&mut archive, &mut made);
    ancestors("/a/b/d/e", &mut archive, &mut made);
    assert_eq!(made.iter().collect::<Vec<_>>(), ["/a", "/a/b", "/a/b/c", "/a/b/d"]);
    let text = String::from_utf8_lossy(&archive.finish()).into_owned();
    assert_eq!(text.matches("a/b\0").count(), 1);
}
