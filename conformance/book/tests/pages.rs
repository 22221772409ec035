//! The generated pages and pictures of the reference are written, the README shows an example file as
//! it is, and the book has a page on each of them.

use std::fs;
use std::path::Path;

#[test]
fn all_files_are_written() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages/new");
    kcov_book::pages::write(&directory).expect("written");
    let files = kcov_book::pages::files();
    assert!(files.len() > 30, "{} files", files.len());
    for (name, content) in files {
        let written = fs::read_to_string(directory.join(&name)).expect(&name);
        assert!(!content.trim().is_empty() && written == content, "{name}");
    }
}

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("../../../README.md");
    let example = include_str!("../../../kcov/examples/syscall.rs");
    assert!(readme.contains(&format!("```rust\n{example}```\n")));
}

fn pages(directory: &Path) -> String {
    let entries =
        fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    entries.map(|entry| entry.path()).fold(String::new(), |text, path| match path.extension() {
        _ if path.is_dir() => text + &pages(&path),
        Some(extension) if extension == "md" => text + &fs::read_to_string(path).expect("a page"),
        _ => text,
    })
}

/// The table of examples names all; each stands on a page, and is run in a guest.
#[test]
fn every_example_has_a_page_and_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("a file");
    let (book, tests) = (pages(&root.join("docs/src")), read("ci/tests/examples.rs"));
    let table = read("docs/src/examples.md");
    let entries = fs::read_dir(root.join("kcov/examples")).expect("examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut count = 0;
    for path in paths.filter(|path| path.is_file()) {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(table.contains(&format!("| [`{name}`](")), "docs/src/examples.md: no `{name}`");
        assert!(book.contains(&format!("kcov/examples/{name}.rs")), "no page shows `{name}`");
        assert!(tests.contains(&format!("\"{name}\"")), "ci/tests/examples.rs: no `{name}`");
        count += 1;
    }
    assert!(count > 0, "the examples have moved");
}
