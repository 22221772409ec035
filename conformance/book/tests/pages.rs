//! The generated pages and pictures of the reference are written.

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
