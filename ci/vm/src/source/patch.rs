//! Patched trees: hard links to the pristine files, except for patched ones.

use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::run::{command, read};
use std::fs;
use std::path::{Path, PathBuf};

/// Copies `tree` to `directory` and applies patches to the copy.
pub fn patched(tree: &Path, patches: &[PathBuf], directory: &Path) -> Result<()> {
    let copy = |how| read(command("cp").arg(how).arg(tree).arg(directory));
    // Hard links to a user's tree on another file system are impossible.
    copy("-al")
        .or_else(|_| {
            let _ = fs::remove_dir_all(directory);
            copy("-a")
        })
        .map_err(|why| Error::unavailable(Phase::Source, why))?;
    for patch in patches {
        // It writes new files, so the other tree's stay.
        let mut command = command("patch");
        command.args(["-p1", "--batch", "--forward", "--no-backup-if-mismatch"]);
        command.arg("-d").arg(directory).arg("-i").arg(patch);
        let output = command.output().or_unavailable(Phase::Source, "patch")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = said.lines().find(|line| line.contains("FAILED")).unwrap_or("failed");
            let message = format!("{} does not apply: {line}", patch.display());
            return Err(Error::unavailable(Phase::Source, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::STATUS_UNAVAILABLE;

    #[test]
    fn the_pristine_tree_stays_so() {
        let root = tempfile::tempdir().expect("a directory");
        let tree = root.path().join("tree");
        fs::create_dir(&tree).expect("a directory");
        fs::write(tree.join("f"), "one\n").expect("a file");
        fs::write(tree.join("g"), "same\n").expect("a file");
        let patch = root.path().join("p");
        fs::write(&patch, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n").expect("a file");
        let copy = root.path().join("copy");
        patched(&tree, std::slice::from_ref(&patch), &copy).expect("applies");
        assert_eq!(fs::read_to_string(copy.join("f")).expect("a file"), "two\n");
        assert_eq!(fs::read_to_string(tree.join("f")).expect("a file"), "one\n");
        let again = root.path().join("again");
        let why = patched(&copy, &[patch], &again).expect_err("applied before");
        assert_eq!(why.status(), STATUS_UNAVAILABLE);
        assert!(why.to_string().contains("does not apply"), "{why}");
    }
}
