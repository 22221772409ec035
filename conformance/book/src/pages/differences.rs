//! The differences between releases, targets and systems, as claimed and declared. A report shows
//! the results of a run.

use super::claims;
use super::reference;
use super::registry::{CRATE, Entry, LINUX, NETBSD, System};
use super::{MARK, WRITING, plain};
use kcov_conformance::declare::Declaration;
use kcov_vm::target::{Target, Targets};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The runner's targets.
pub(super) fn all_targets() -> Vec<Target> {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/vm/data");
    let text = include_str!("../../../../ci/vm/data/targets.toml");
    Targets::parse(text, base.as_ref()).expect("the targets").all
}

/// What a target declares.
pub(super) fn declaration(words: &[String]) -> Declaration {
    Declaration::parse(&words.join(",")).expect("our words")
}

/// The names of a system's targets, with their declarations.
fn targets(system: System) -> Vec<(String, Declaration)> {
    let mut all = Vec::new();
    for Target { name, declares, abi, .. } in all_targets() {
        let abis = abi.into_iter().map(|(abi, it)| (format!("{name} --abi {abi}"), it.declares));
        let words: Vec<_> = abis.collect();
        all.extend(if words.is_empty() { vec![(name, declares)] } else { words });
    }
    let all = all.into_iter().map(|(name, words)| (name, declaration(&words)));
    all.filter(|(_, target)| target.system == Some(system.word)).collect()
}

/// The differences between a system's releases, and between its targets' kernels.
pub(super) fn releases(system: System) -> String {
    let name = system.name;
    let of_it = |part: &&System| part.word.is_empty() || part.word == system.word;
    let mut claims = system.entries();
    claims.extend(CRATE.iter().filter(of_it).flat_map(|part| part.entries()));
    let (all, mut rows) = (claims, String::new());
    let changed: Vec<_> = all.iter().filter(|claim| claim.releases().is_some()).collect();
    let topic = |claim: &Entry| claim.id.split('.').next().map(str::to_owned);
    let whole = |one: &Entry| {
        let mut of_it = all.iter().filter(|claim| topic(claim) == topic(one));
        of_it.all(|claim| claim.releases() == one.releases())
    };
    let (new, some): (Vec<_>, Vec<_>) = changed.iter().partition(|claim| whole(claim));
    let mut topics: BTreeMap<_, usize> = BTreeMap::new();
    for claim in new {
        *topics.entry((topic(claim), claim.releases())).or_default() += 1;
    }
    for ((topic, releases), number) in topics {
        let (topic, releases) = (topic.unwrap_or_default(), releases.unwrap_or_default());
        writeln!(rows, "| all {number} claims `{topic}.…` | {releases} | |").expect(WRITING);
    }
    for claim in some {
        let releases = claim.releases().unwrap_or_default();
        let (text, link) = (cell(claim), home(claim));
        writeln!(rows, "| {text} | {releases} | {link} |").expect(WRITING);
    }
    let mut page = format!(
        "{MARK}# Differences between releases of {name}\n\n\
         {} of {} claims do not apply to every release. Unless marked otherwise, a check with \
         the same id proves each of them on the targets to which it applies.\n\n\
         | Claim | Releases | Page |\n|---|---|---|\n{rows}\n\
         ## Features that some kernels lack\n\n\
         Targets of `cargo vm` declare these features. A run proves the declaration before any \
         check, and skips checks that need an undeclared feature.\n\n\
         | Feature | Meaning | Declared by |\n|---|---|---|\n",
        changed.len(),
        all.len()
    );
    let targets = targets(system);
    for &feature in kcov_conformance::feature::Feature::ALL {
        let names = |having: bool| {
            let chosen = targets.iter().filter(move |(_, target)| target.has(feature) == having);
            chosen.map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>()
        };
        let (having, lacking) = (names(true), names(false));
        let names = match (having.len(), lacking.len()) {
            (0, _) | (_, 0) => continue,
            (some, fewer) if fewer < some => format!("all but {}", lacking.join(", ")),
            _ => having.join(", "),
        };
        let meaning = plain(feature.meaning());
        writeln!(page, "| `{feature}` | {meaning} | {names} |").expect(WRITING);
    }
    page
}

/// The claims about both systems that differ, and the kernels that differ from their documents.
pub(super) fn systems() -> String {
    let claims = claims::of_both_systems();
    let shared: Vec<_> = claims.iter().filter(|claim| claim.is_of_both()).collect();
    let same = shared.iter().filter(|claim| claim.is_the_same()).count();
    let mut page = format!(
        "{MARK}{}\n{} claims have the same id on both systems; {same} of them hold alike. These differ:\n\n\
         | Linux | NetBSD | Page |\n|---|---|---|\n",
        include_str!("systems.md"),
        shared.len()
    );
    for claim in shared.iter().filter(|claim| !claim.is_the_same()) {
        if let [Some(linux), Some(netbsd)] = claim.sides() {
            let (linux, netbsd, link) = (made_for(linux), made_for(netbsd), home(linux));
            writeln!(page, "| {linux} | {netbsd} | {link} |").expect(WRITING);
        }
    }
    page.push_str(
        "\n## Kernels that disagree with their documents\n\n\
         | System | Kernel | Page |\n|---|---|---|\n",
    );
    for system in [LINUX, NETBSD] {
        for claim in system.entries() {
            if let Some(instead) = &claim.disagrees {
                let (instead, link) = (plain(instead), home(&claim));
                writeln!(page, "| {} | {instead} | {link} |", system.name).expect(WRITING);
            }
        }
    }
    page
}

/// The claim, its errno, and its status if no check proves it.
pub(super) fn cell(claim: &Entry) -> String {
    let mut text = plain(&claim.text);
    if let Some(errno) = &claim.errno {
        write!(text, " **{errno}**").expect(WRITING);
    }
    if claim.status != "checked" {
        write!(text, " ({})", claim.status).expect(WRITING);
    }
    text
}

/// The same, with the releases.
fn made_for(claim: &Entry) -> String {
    let releases = claim.releases().map(|releases| format!(" ({releases})"));
    cell(claim) + &releases.unwrap_or_default()
}

/// A link to the claim, with the title of its page. Claims about the safe crate keep their ids.
pub(super) fn home(claim: &Entry) -> String {
    let id = &claim.id;
    if id.starts_with("api.") {
        return format!("[`{id}`](../crate.md)");
    }
    let page = reference::page_of(id);
    format!("[{}]({}#{id})", page.title, page.file)
}

#[cfg(test)]
mod tests {
    use super::super::registry::{LINUX, NETBSD};
    use super::{releases, systems};

    #[track_caller]
    fn row(page: &str, id: &str) -> String {
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(id));
        row.expect(id).to_owned()
    }

    #[test]
    fn a_shared_claim_shows_the_errno_of_both() {
        let page = systems();
        let row = row(&page, "#disable.not-enabled-is-refused)");
        assert!(row.contains("**EINVAL**") && row.contains("**ENOENT**"), "{row}");
    }

    #[test]
    fn a_claim_of_some_releases_is_a_row() {
        let linux = releases(LINUX);
        assert!(row(&linux, "#remote.busy-if-thread-traced-locally)").contains("| before 7.2 |"));
        assert!(!linux.contains("#disable.not-enabled-is-refused)"));
        assert!(row(&linux, "`api.session.dropped-in-every-order`").contains("| since 7.2 |"));
        let netbsd = releases(NETBSD);
        assert!(row(&netbsd, "`api.remote.old-release-is-named`").contains("| before 10.0 |"));
    }

    #[test]
    fn what_some_targets_declare_is_a_row() {
        let linux = releases(LINUX);
        let row = row(&linux, "`cmp-bound-check`");
        assert!(row.contains("| all but ") && row.contains("`linux-6.1`"), "{row}");
        assert!(!row.contains("`linux-6.12`"), "{row}");
        let netbsd = releases(NETBSD);
        assert!(netbsd.contains("| `netbsd --abi 9` |") && !netbsd.contains("| `kcov` |"));
    }
}
