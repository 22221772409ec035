//! How far the registry and the sources that it was read from have drifted apart.
//!
//! Two questions to a source tree: does every place that a claim names still exist, and does the
//! document say anything that no claim is about? Each sentence of the document, and each part of
//! its programs, has to have the locator of a claim in it. A third to Linux's: does every place
//! that begins a remote section have a claim?

mod document;
mod locate;
mod manual;
pub mod sites;

pub use document::{Piece, collapse};
pub use locate::{Document, Drift, compare};

use crate::claims::{Authority, Claim, Claims};
use crate::kernel::Version;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What Linux's document is called in its tree.
const LINUX_DOCUMENT: &str = "Documentation/dev-tools/kcov.rst";
/// What NetBSD's is.
const NETBSD_DOCUMENT: &str = "share/man/man4/kcov.4";
/// What tells NetBSD's tree from Linux's, and its interfaces from each other.
const NETBSD_HEADER: &str = "sys/sys/kcov.h";

/// What the registries are compared with.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A source tree of Linux or of NetBSD.
    pub tree: Option<PathBuf>,
    /// A copy of kcov(4), which goes before the tree's.
    pub manual: Option<PathBuf>,
}

/// Compares the registry of the sources' system with them, and says what has drifted. Returns
/// whether nothing has.
pub fn report(sources: &Sources, out: &mut impl Write) -> io::Result<bool> {
    match &sources.tree {
        Some(tree) if !tree.join(NETBSD_HEADER).exists() => {
            if sources.manual.is_some() {
                let why = format!("--manual: {} is no source tree of NetBSD", tree.display());
                return Err(io::Error::other(why));
            }
            linux(tree, out)
        }
        tree => netbsd(tree.as_deref(), sources.manual.as_deref(), out),
    }
}

fn linux(tree: &Path, out: &mut impl Write) -> io::Result<bool> {
    let makefile = read(&tree.join("Makefile"))?;
    let version = version(&makefile)
        .ok_or_else(|| io::Error::other(format!("no version in {}/Makefile", tree.display())))?;
    let all = Claims::of("linux");
    let claims: Vec<_> = all
        .iter()
        // What is proposed stands in no tree, and the crate is not part of one.
        .filter(|claim| !matches!(claim.authority, Authority::Message | Authority::Crate))
        .filter(|claim| claim.excludes(version).is_none())
        .collect();
    let text = read(&tree.join(LINUX_DOCUMENT))?;
    let document = Document {
        file: LINUX_DOCUMENT,
        text: &text,
        pieces: document::pieces,
        normal: document::collapse,
    };
    let sections = sites::compare(version, &sites::calls(tree)?);
    conclude(&format!("Linux {version}"), &claims, Some(tree), Some(document), sections, out)
}

fn netbsd(tree: Option<&Path>, manual: Option<&Path>, out: &mut impl Write) -> io::Result<bool> {
    let page = match (manual, tree.map(|tree| tree.join(NETBSD_DOCUMENT))) {
        (Some(file), _) => Some(manual::read(file)?),
        (None, Some(file)) if file.exists() => Some(manual::read(&file)?),
        // The kernel's sources and the manual's are in different sets.
        _ => None,
    };
    let document = page.as_deref().map(|text| Document {
        file: NETBSD_DOCUMENT,
        text,
        pieces: manual::pieces,
        normal: manual::normal,
    });
    let interface = match tree {
        None => None,
        // What a kernel's own number does not tell, see `raw::interface`.
        Some(tree) if read(&tree.join(NETBSD_HEADER))?.contains("KCOV_IOC_REMOTE_ATTACH") => {
            Some(Version(10, 0))
        }
        Some(_) => Some(Version(9, 0)),
    };
    let all = Claims::of("netbsd");
    let claims: Vec<_> = all
        .iter()
        .filter(|claim| match claim.authority {
            Authority::Message | Authority::Crate => false,
            Authority::Document => document.is_some(),
            Authority::Header | Authority::Driver => {
                interface.is_some_and(|version| claim.excludes(version).is_none())
            }
        })
        .collect();
    let name = interface
        .map_or_else(|| "kcov(4)".to_owned(), |version| format!("NetBSD, interface of {version}"));
    conclude(&name, &claims, tree, document, Vec::new(), out)
}

fn conclude(
    name: &str,
    claims: &[&Claim],
    tree: Option<&Path>,
    document: Option<Document<'_>>,
    sections: Vec<Drift>,
    out: &mut impl Write,
) -> io::Result<bool> {
    let read = |file: &str| match tree {
        Some(tree) => fs::read_to_string(tree.join(file)),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    let mut drifts = compare(claims, &read, document);
    drifts.extend(sections);
    for drift in &drifts {
        writeln!(out, "{drift}")?;
    }
    let said = document.map_or_else(
        || "the document is not there and was not compared".to_owned(),
        |document| format!("{} pieces of the document", (document.pieces)(document.text).len()),
    );
    let found =
        if drifts.is_empty() { "none has drifted".into() } else { drifts.len().to_string() };
    writeln!(out, "{name}: {} claims, {said}: {found}", claims.len())?;
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
