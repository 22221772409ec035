//! Finds the places in a Linux tree that start remote sections, and compares them with the claims.

use kcov_conformance::claims::Claims;
use kcov_conformance::kernel::Version;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

const SITES: &str = include_str!("../../../claims/linux-sites.toml");

/// The common part of the names. A subsystem may wrap the call in its own function.
const CALL: &str = "kcov_remote_start";
/// The driver, which defines the functions.
const DRIVER: &str = "kernel/kcov.c";
/// Directories without kernel code.
const OTHERS: &[&str] = &["Documentation", "samples", "scripts", "tools"];

/// A place in the registry: the calling function, the releases with the call, and the claim about its
/// coverage.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Site {
    file: String,
    function: String,
    since: Option<Version>,
    until: Option<Version>,
    claim: String,
}

/// All places in the registry.
fn sites() -> Vec<Site> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Registry {
        site: Vec<Site>,
    }
    let sites = toml::from_str::<Registry>(SITES).expect("linux-sites.toml").site;
    let claims = Claims::of("linux");
    for Site { claim, .. } in &sites {
        assert!(claims.get(claim).is_some(), "linux-sites.toml: there is no claim {claim}");
    }
    sites
}

/// The number of calls in each function of each file.
type Calls = BTreeMap<(String, String), usize>;

/// The differences between the registry and a kernel source.
pub(super) fn compare(version: Version, found: &Calls) -> Vec<String> {
    let mut known = Calls::new();
    for Site { file, function, since, until, .. } in sites() {
        let begun = since.is_none_or(|since| version >= since);
        if begun && until.is_none_or(|until| version < until) {
            *known.entry((file, function)).or_default() += 1;
        }
    }
    let mut places: Vec<_> = known.keys().chain(found.keys()).collect();
    places.sort();
    places.dedup();
    let drift = |place: &(String, String)| {
        let [claimed, there] =
            [&known, found].map(|calls| calls.get(place).copied().unwrap_or_default());
        let (file, function) = place;
        (claimed != there)
            .then(|| format!("sections: {file}: {function}: {there} begin, {claimed} claimed"))
    };
    places.into_iter().filter_map(drift).collect()
}

/// Searches a whole tree.
pub(super) fn calls(tree: &Path) -> io::Result<Calls> {
    let mut calls = Calls::new();
    let is_code = |path: &Path| {
        path.parent() != Some(tree) || !OTHERS.iter().any(|other| path.ends_with(other))
    };
    for path in super::files(tree, &is_code)? {
        let place = path.strip_prefix(tree).map_err(io::Error::other)?.display().to_string();
        if place == DRIVER || path.extension().is_none_or(|end| end != "c") {
            continue;
        }
        let bytes = fs::read(&path)?;
        if memchr::memmem::find(&bytes, CALL.as_bytes()).is_some() {
            for function in callers(&String::from_utf8_lossy(&bytes)) {
                *calls.entry((place.clone(), function)).or_default() += 1;
            }
        }
    }
    Ok(calls)
}

/// The calling functions, one entry per call.
fn callers(text: &str) -> Vec<String> {
    let mut function = "";
    let mut all = Vec::new();
    for line in text.lines() {
        let begins = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let name = line.split_once('(').map(|(before, _)| before).unwrap_or_default();
        if begins && !name.is_empty() && !line.ends_with(';') {
            let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            function = name.rsplit(|c| !letter(c)).next().unwrap_or_default();
        } else if !begins && line.split_once(CALL).is_some_and(|(_, rest)| is_call(rest)) {
            all.push(function.to_owned());
        }
    }
    all
}

/// Whether the rest of a name and an argument follow. Prose has no argument.
fn is_call(rest: &str) -> bool {
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    rest.strip_prefix('(').is_some_and(|arguments| !arguments.starts_with(')'))
}

#[cfg(test)]
#[test]
fn a_function_calls_as_often_as_it_does() {
    let text = "\
/* kcov_remote_start() is called below. */
EXPORT_SYMBOL(kcov_remote_start);
static void
one(struct a *a,
    int b)
{
\tkcov_remote_start_common(a->handle);
out:
\tsubsystem_kcov_remote_start(a);
}

static struct b *two(int b)
{
\tkcov_remote_start(b);
\tkcov_remote_stop();
}
";
    assert_eq!(callers(text), ["one", "one", "two"]);
}
