//! How far the registry and the sources that it was read from have drifted apart.
//!
//! Two questions to a source tree: does every place that a claim names still exist, and does the
//! document say anything that no claim is about? Each sentence of the document, and each part of
//! its programs, has to have the locator of a claim in it.

mod document;
mod locate;

pub use document::{Piece, collapse, pieces};
pub use locate::{Drift, compare};

use crate::claims::{Authority, Claims};
use crate::kernel::Version;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The document that has to be covered, in the source tree.
const DOCUMENT: &str = "Documentation/dev-tools/kcov.rst";

/// Compares the registry with a tree, and says what has drifted. Returns whether nothing has.
pub fn report(tree: &Path, out: &mut impl Write) -> io::Result<bool> {
    let makefile = read(&tree.join("Makefile"))?;
    let version = version(&makefile)
        .ok_or_else(|| io::Error::other(format!("no version in {}/Makefile", tree.display())))?;
    let all = Claims::of_system();
    let claims: Vec<_> = all
        .iter()
        .filter(|claim| claim.authority != Authority::Crate && claim.excludes(version).is_none())
        .collect();
    let document = read(&tree.join(DOCUMENT))?;
    let drifts = compare(&claims, &|file| fs::read_to_string(tree.join(file)), DOCUMENT, &document);
    for drift in &drifts {
        writeln!(out, "{drift}")?;
    }
    let (claims, pieces) = (claims.len(), pieces(&document).len());
    let found =
        if drifts.is_empty() { "none has drifted".into() } else { drifts.len().to_string() };
    writeln!(out, "Linux {version}: {claims} claims, {pieces} pieces of the document: {found}")?;
    Ok(drifts.is_empty())
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// What the top of a kernel's Makefile says.
fn version(makefile: &str) -> Option<Version> {
    let number = |name: &str| {
        let value = makefile.lines().find_map(|line| line.strip_prefix(name)?.split_once('='))?.1;
        value.trim().parse().ok()
    };
    Some(Version(number("VERSION")?, number("PATCHLEVEL")?))
}

#[cfg(test)]
mod tests {
    use super::version;
    use crate::kernel::Version;

    #[test]
    fn the_tree_says_its_version() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\n";
        assert_eq!(version(text), Some(Version(6, 12)));
        assert_eq!(version("all:\n"), None);
    }
}
