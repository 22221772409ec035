//! Pages on how releases, targets and systems differ. All of it is claimed or declared: what a run
//! has shown stands in its report.

use super::registry::{CRATE, Entry, System};
use super::{MARK, WRITING, plain};
use crate::declare::Declaration;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A target of `cargo vm`, as far as it matters here.
#[derive(Deserialize)]
struct Target {
    name: String,
    #[serde(default)]
    declares: Vec<String>,
    #[serde(default)]
    abi: BTreeMap<u32, Abi>,
}

#[derive(Deserialize)]
struct Abi {
    declares: Vec<String>,
}

/// What the targets of a system are called, and what they declare.
fn targets(system: System) -> Vec<(String, Declaration)> {
    #[derive(Deserialize)]
    struct File {
        target: Vec<Target>,
    }
    let file: File =
        toml::from_str(include_str!("../../../ci/targets.toml")).expect("the list of targets");
    let mut all = Vec::new();
    for Target { name, declares, abi } in file.target {
        let abis = abi.into_iter().map(|(abi, it)| (format!("{name} --abi {abi}"), it.declares));
        let words: Vec<_> = abis.collect();
        all.extend(if words.is_empty() { vec![(name, declares)] } else { words });
    }
    let declaration = |words: Vec<String>| Declaration::parse(&words.join(",")).expect("our words");
    let all = all.into_iter().map(|(name, words)| (name, declaration(words)));
    all.filter(|(_, target)| target.system == Some(system.word)).collect()
}

/// How the releases of a system differ, and the kernels of its targets.
pub(super) fn releases(system: System) -> String {
    let name = system.name;
    let of_it = |part: &&System| part.word.is_empty() || part.word == system.word;
    let mut claims = system.entries();
    claims.extend(CRATE.iter().filter(of_it).flat_map(|part| part.entries()));
    let (all, mut rows) = (claims.len(), String::new());
    claims.retain(|claim| claim.releases().is_some());
    for claim in &claims {
        let releases = claim.releases().unwrap_or_default();
        writeln!(rows, "| {} `{}` | {releases} |", cell(claim), claim.id).expect(WRITING);
    }
    let mut page = format!(
        "{MARK}# Releases of {name} compared\n\n\
         {} of {all} claims are not made for every release. A check of the same name proves each of \
         them on the targets whose kernels it is made for, if nothing else is said.\n\n\
         | Claim | Releases |\n|---|---|\n{rows}\n\
         ## What not every kernel has\n\n\
         What targets of `cargo vm` declare. A run proves the declaration before any check; claims \
         that need what is not declared are not checked on the target.\n\n\
         | Word | Meaning | Declared by |\n|---|---|---|\n",
        claims.len()
    );
    let targets = targets(system);
    for &feature in crate::declare::Feature::ALL {
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

/// The claims that both systems are held to.
pub(super) fn systems(linux: System, netbsd: System) -> String {
    let sides = [linux, netbsd].map(|system| {
        let mut entries = system.entries();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        (system, entries)
    });
    let [(_, ours), (_, theirs)] = &sides;
    let mut page = format!(
        "{MARK}# Linux and NetBSD\n\n\
         Claims that both systems are held to, under one id. Where the wording differs, so does the \
         behaviour; the errno is the one that is claimed. A check of the same name proves each claim \
         on either system, if nothing else is said.\n\n\
         | Claim | Linux | NetBSD |\n|---|---|---|\n"
    );
    for linux in ours {
        if let Some(netbsd) = theirs.iter().find(|claim| claim.id == linux.id) {
            let (id, linux, netbsd) = (&linux.id, made_for(linux), made_for(netbsd));
            let netbsd = if netbsd == linux { "the same" } else { &netbsd };
            writeln!(page, "| [`{id}`](../linux.md#{id}) | {linux} | {netbsd} |").expect(WRITING);
        }
    }
    page.push_str(
        "\n## Where a kernel and its document disagree\n\n\
         | System | Claim | What the kernel does |\n|---|---|---|\n",
    );
    for (system, entries) in &sides {
        for claim in entries {
            if let Some(instead) = &claim.disagrees {
                let (name, text, instead) = (system.name, plain(&claim.text), plain(instead));
                writeln!(page, "| {name} | {text} `{}` | {instead} |", claim.id).expect(WRITING);
            }
        }
    }
    page
}

/// The claim, its errno, and what becomes of it if no check proves it.
fn cell(claim: &Entry) -> String {
    let mut text = plain(&claim.text);
    if let Some(errno) = &claim.errno {
        write!(text, " **{errno}**").expect(WRITING);
    }
    if claim.status != "checked" {
        write!(text, " ({})", claim.status).expect(WRITING);
    }
    text
}

/// The same, and the releases that it is made for.
fn made_for(claim: &Entry) -> String {
    let releases = claim.releases().map(|releases| format!(" ({releases})"));
    cell(claim) + &releases.unwrap_or_default()
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
        let page = systems(LINUX, NETBSD);
        let row = row(&page, "`disable.not-enabled-is-refused`");
        assert!(row.contains("**EINVAL**") && row.contains("**ENOENT**"), "{row}");
    }

    #[test]
    fn a_claim_of_some_releases_is_a_row() {
        let linux = releases(LINUX);
        assert!(row(&linux, "`remote.busy-if-thread-traced-locally`").ends_with("| before 7.2 |"));
        assert!(!linux.contains("`disable.not-enabled-is-refused`"));
        assert!(row(&linux, "`api.session.dropped-in-every-order`").ends_with("| since 7.2 |"));
        let netbsd = releases(NETBSD);
        assert!(row(&netbsd, "`api.remote.old-release-is-named`").ends_with("| before 10.0 |"));
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
