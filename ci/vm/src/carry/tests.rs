//! Tests which files are carried, skipped or refused.

use super::*;
use crate::cache::Cache;
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
    let cache = Cache::open(Some(&path("cache"))).expect("a cache");
    for directory in
        [cache.at("sources"), cache.at("kernels"), cache.at("programs"), cache.at("runs")]
    {
        fs::write(directory.join("large"), "").expect("a file");
    }
    let mut carried = Carried::default();
    carried.add(root.path()).expect("carried");
    let below = |at: &PathBuf| at.strip_prefix(root.path()).ok().map(Path::to_path_buf);
    let all: Vec<_> = carried.entries.keys().filter_map(below).collect();
    assert_eq!(all, ["", "cache", "data", "data/seed", "link"].map(PathBuf::from));
    assert_eq!(carried.bytes, "data/seed".len() as u64);
}

#[test]
fn what_cannot_be_carried_is_refused() {
    let root = tempfile::tempdir().expect("a directory");
    let file = fs::File::create(root.path().join("large")).expect("a file");
    file.set_len(MOST + 1).expect("a hole");
    let why = Carried::default().add(root.path()).expect_err("refused");
    assert!(why.contains("512 MiB") && why.contains("large; ") && why.contains("carry only what"));
    let why = Carried::default().add(Path::new("/etc/../proc/version")).expect_err("refused");
    assert!(why.contains("its own /proc"), "{why}");
    let why = Carried::default().add(Path::new("/none/there")).expect_err("refused");
    assert!(why.starts_with("/none/there: "), "{why}");
}

#[test]
fn links_on_the_way_are_links_in_the_guest() {
    let root = tempfile::tempdir().expect("a directory");
    let path = |name: &str| root.path().join(name);
    fs::create_dir_all(path("real/deep")).expect("directories");
    fs::write(path("real/file"), "x").expect("a file");
    symlink("real/deep", path("way")).expect("a link");
    symlink("../file", path("real/deep/to")).expect("a link");
    let mut carried = Carried::default();
    carried.add(&path("way/to")).expect("carried");
    let is = |name: &str| carried.entries.get(&path(name));
    assert!(matches!(is("way"), Some(Entry::Link(to)) if to == Path::new("real/deep")));
    assert!(matches!(is("real/deep/to"), Some(Entry::Link(to)) if to == Path::new("../file")));
    assert!(matches!(is("real/file"), Some(Entry::File(_, content)) if content[..] == *b"x"));
    assert!(is("way/to").is_none());
    // What the runner adds goes where the links lead.
    carried.file(&path("way/own"), Access::root(0o600), b"y"[..].into());
    assert!(carried.entries.contains_key(&path("real/deep/own")));
    symlink("loop", path("loop")).expect("a link");
    assert!(carried.add(&path("loop")).is_err_and(|why| why.contains("Too many levels")));
}
