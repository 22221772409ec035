//! Compares the registry with the sources that it quotes.
//!
//! For each tree: does every place that a claim names still exist, and does a claim cover every
//! statement of the document? Each sentence and each part of an example program must contain a
//! locator. For Linux also: does every place that starts a remote section have a claim? And the
//! reverse: does a file of this repository quote more of the sources than a locator?

mod document;
mod manual;
mod sites;

pub use document::collapse;

use document::Piece;
use kcov_conformance::claims::{Authority, Claim, Claims};
use kcov_conformance::kernel::Version;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The path of Linux's document.
const LINUX_DOCUMENT: &str = "Documentation/dev-tools/kcov.rst";
/// The path of NetBSD's document.
const NETBSD_DOCUMENT: &str = "share/man/man4/kcov.4";
/// Distinguishes NetBSD's tree from Linux's, and the versions of NetBSD's interface.
const NETBSD_HEADER: &str = "sys/sys/kcov.h";

/// The sources to compare with.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sources {
    /// A source tree of Linux or NetBSD.
    pub tree: Option<PathBuf>,
    /// A copy of kcov(4), used instead of the tree's.
    pub manual: Option<PathBuf>,
}

/// Compares the sources with the registry of their system and reports the differences. Returns
/// whether there are none.
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
    // No tree contains the proposals or the crate.
    let there = |it: &&Claim| !matches!(it.authority, Authority::Message | Authority::Crate);
    let claims = all.iter().filter(there).filter(|claim| claim.excludes(version).is_none());
    let claims: Vec<_> = claims.collect();
    let text = read(&tree.join(LINUX_DOCUMENT))?;
    let (pieces, normal) = (document::pieces, document::collapse);
    let document = Document { file: LINUX_DOCUMENT, text: &text, pieces, normal };
    let sections = sites::compare(version, &sites::calls(tree)?);
    conclude(&format!("Linux {version}"), &claims, Some(tree), Some(document), sections, out)
}

fn netbsd(tree: Option<&Path>, manual: Option<&Path>, out: &mut impl Write) -> io::Result<bool> {
    let page = match (manual, tree.map(|tree| tree.join(NETBSD_DOCUMENT))) {
        (Some(file), _) => Some(manual::read(file)?),
        (None, Some(file)) if file.exists() => Some(manual::read(&file)?),
        // NetBSD ships kernel sources and manual sources in different sets.
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
        // The version does not identify the interface, see `raw::interface`.
        Some(tree) if read(&tree.join(NETBSD_HEADER))?.contains("KCOV_IOC_REMOTE_ATTACH") => {
            Some(Version(10, 0))
        }
        Some(_) => Some(Version(9, 0)),
    };
    let all = Claims::of("netbsd");
    let there = |claim: &&Claim| match claim.authority {
        Authority::Message | Authority::Crate => false,
        Authority::Document => document.is_some(),
        Authority::Driver => interface.is_some_and(|version| claim.excludes(version).is_none()),
    };
    let claims: Vec<_> = all.iter().filter(there).collect();
    let name = interface
        .map_or_else(|| "kcov(4)".to_owned(), |version| format!("NetBSD, interface of {version}"));
    conclude(&name, &claims, tree, document, Vec::new(), out)
}

/// A document that the claims must cover.
#[derive(Clone, Copy, Debug)]
struct Document<'a> {
    /// Its path in the source tree.
    file: &'a str,
    /// Its text.
    text: &'a str,
    /// Splits it into pieces.
    pieces: fn(&str) -> Vec<Piece>,
    /// Normalizes its text, or a locator, for comparison.
    normal: fn(&str) -> String,
}

/// Compares the claims with the document and other sources, which `read` returns, and the document
/// with the claims. Returns the differences in words.
fn compare(
    claims: &[&Claim],
    read: &dyn Fn(&str) -> io::Result<String>,
    document: Option<Document<'_>>,
) -> Vec<String> {
    let of_document = |file: &str| document.filter(|document| document.file == file);
    let mut drifts = Vec::new();
    let mut sources: HashMap<&str, Option<String>> = HashMap::new();
    for claim in claims {
        let document = of_document(&claim.source);
        let normal = document.map_or(collapse as fn(&str) -> String, |document| document.normal);
        let source = sources.entry(&claim.source).or_insert_with(|| {
            let text = document.map_or_else(|| read(&claim.source), |d| Ok(d.text.to_owned()));
            match text {
                Ok(text) => Some(normal(&text)),
                Err(error) => {
                    drifts.push(format!("gone: {}: {error}", claim.source));
                    None
                }
            }
        });
        let Some(text) = source else { continue };
        let mut gone = |words: &str| {
            drifts.push(format!("gone: {}: {words:?} is not in {}", claim.id, claim.source));
        };
        if !claim.locators().any(|words| text.contains(&normal(words))) {
            gone(&claim.locator);
        }
        // The case of headings differs between releases.
        if !text.to_lowercase().contains(&claim.section.to_lowercase()) {
            gone(&claim.section);
        }
    }
    let Some(Document { file, text, pieces, normal }) = document else { return drifts };
    let about = claims.iter().filter(|claim| claim.source == file);
    let locators: Vec<String> = about.flat_map(|claim| claim.locators()).map(normal).collect();
    for piece in pieces(text) {
        if !locators.iter().any(|words| piece.text.contains(words)) {
            let start = piece.text.split(' ').take(8).collect::<Vec<_>>().join(" ");
            drifts.push(format!("unclaimed: {file}:{}: {start:?}", piece.line));
        }
    }
    drifts
}

fn conclude(
    name: &str,
    claims: &[&Claim],
    tree: Option<&Path>,
    document: Option<Document<'_>>,
    sections: Vec<String>,
    out: &mut impl Write,
) -> io::Result<bool> {
    let read = |file: &str| match tree {
        Some(tree) => fs::read_to_string(tree.join(file)),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    let mut drifts = compare(claims, &read, document);
    drifts.extend(sections);
    let named: BTreeSet<&str> = claims.iter().map(|claim| &*claim.source).collect();
    let mut texts: Vec<_> =
        named.into_iter().filter_map(|file| Some((file, read(file).ok()?))).collect();
    texts.extend(document.map(|document| (document.file, document.text.to_owned())));
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    drifts.extend(quotes(repository.as_ref(), &texts)?);
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

/// One word more than a locator may have.
const WORDS: usize = 9;

/// Finds text of a kernel in this repository. A locator has at most eight words; more of a kernel's
/// source may stand in patches only, which have its licence.
///
/// Returns the runs of nine words that a file of the `repository` shares with a source, one per run.
/// The sources are paths and texts.
fn quotes(repository: &Path, sources: &[(&str, String)]) -> io::Result<Vec<String>> {
    let mut known: HashMap<Vec<&str>, &str> = HashMap::new();
    for (source, text) in sources {
        known.extend(words(text).windows(WORDS).map(|run| (text_of(run), *source)));
    }
    let mut quotes = Vec::new();
    // All files but patches, licences, hidden ones and what cargo built.
    let wanted = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_built = name == "target" && path.join("CACHEDIR.TAG").exists();
        let is_hidden = name.starts_with('.') && name != ".github";
        !(is_built || is_hidden || name.ends_with(".patch") || name.starts_with("LICENSE"))
    };
    for path in files(repository, &wanted)? {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let words = words(&text);
        let mut before = false;
        for run in words.windows(WORDS) {
            let source = known.get(&text_of(run));
            if let (false, Some(source)) = (before, source) {
                let file = path.strip_prefix(repository).unwrap_or(&path).display();
                let (line, words) = (run[0].0, text_of(run).join(" "));
                quotes.push(format!("quoted: {file}:{line}: {words:?} is from {source}"));
            }
            before = source.is_some();
        }
    }
    Ok(quotes)
}

/// The words with their lines, without quotation marks and the signs that begin comments.
fn words(text: &str) -> Vec<(usize, &str)> {
    let words = text.lines().enumerate().flat_map(|(index, line)| {
        let marks = |c: char| "\"'`\\,;.".contains(c);
        line.split_whitespace().map(move |word| (index + 1, word.trim_matches(marks)))
    });
    words.filter(|(_, word)| word.contains(char::is_alphanumeric)).collect()
}

fn text_of<'a>(run: &[(usize, &'a str)]) -> Vec<&'a str> {
    run.iter().map(|(_, word)| *word).collect()
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// All files below a directory, except what is not `wanted`. Follows no links.
fn files(directory: &Path, wanted: &dyn Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        match wanted(&path) {
            true if kind.is_dir() => found.extend(files(&path, wanted)?),
            true if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    Ok(found)
}

/// The version at the top of a kernel's Makefile.
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
    use kcov_conformance::kernel::Version;

    #[test]
    fn the_tree_says_its_version() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\n";
        assert_eq!(version(text), Some(Version(6, 12)));
        assert_eq!(version("all:\n"), None);
    }
}
