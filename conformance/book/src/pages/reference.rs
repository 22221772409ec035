//! The pages of the reference: which claim is on which page, and what a page consists of.

use super::claims::{self, Claim};
use super::{MARK, WRITING, errors, states};
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// A page about a request, a call or a topic.
#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) file: String,
    pub(super) title: String,
    /// What the request does, as Markdown.
    about: String,
    /// Sections, such as one for each system's request.
    #[serde(default)]
    part: Vec<Part>,
    /// Names of the safe crate's operations.
    pub(super) operations: Vec<String>,
    /// Beginnings of ids.
    claims: Vec<String>,
}

#[derive(Deserialize)]
struct Part {
    name: String,
    text: String,
}

/// All pages, in the order of the navigation.
pub(super) static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        page: Vec<Page>,
    }
    toml::from_str::<File>(include_str!("reference.toml")).expect("the pages").page
});

/// The page of a claim.
///
/// # Panics
///
/// If no page has a beginning of the id.
pub(super) fn page_of(id: &str) -> &'static Page {
    let length = |page: &Page| {
        page.claims.iter().filter(|of| id.starts_with(*of)).map(String::len).max().unwrap_or(0)
    };
    let best = PAGES.iter().max_by_key(|page| length(page)).filter(|page| length(page) > 0);
    best.unwrap_or_else(|| panic!("{id}: on no page; add its beginning to reference.toml"))
}

/// A link to a claim, from another generated page.
pub(super) fn link(id: &str) -> String {
    format!("[`{id}`]({}#{id})", page_of(id).file)
}

/// A link to a request, from a page beside the folder of the generated ones.
///
/// # Panics
///
/// If no page has the request.
pub(super) fn request(name: &str) -> String {
    let has = |page: &&Page| page.part.iter().any(|part| part.name == name);
    let page = PAGES.iter().find(has).unwrap_or_else(|| panic!("{name}: on no page"));
    format!("[`{name}`](generated/{}#{name})", page.file)
}

impl Page {
    /// The claims of both systems that belong here.
    fn claims(&self) -> Vec<Claim> {
        let all = claims::of_both_systems();
        all.into_iter().filter(|claim| std::ptr::eq(page_of(claim.id()), self)).collect()
    }

    pub(super) fn text(&self) -> String {
        let mut page = format!("{MARK}# {}\n\n{}\n", self.title, self.about);
        for Part { name, text } in &self.part {
            // Headings have anchors in lower case otherwise.
            let anchor =
                if name.starts_with("KCOV_") { format!(" {{#{name}}}") } else { String::new() };
            writeln!(page, "## {name}{anchor}\n\n{text}").expect(WRITING);
        }
        let (errors, rest): (Vec<_>, Vec<_>) =
            self.claims().into_iter().partition(Claim::is_an_error);
        page.push_str(&errors::section(self, &errors));
        page.push_str(&states::section(self));
        page.push_str(&claims::section(&rest));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGES, page_of};
    use crate::pages::{files, registry};
    use kcov_conformance::claims::FILES;
    use std::collections::BTreeSet;

    #[test]
    fn the_longest_beginning_decides() {
        assert_eq!(page_of("remote.not-enabled-disable-is-refused").file, "disable.md");
        assert_eq!(page_of("remote.release.close-keeps-handles").file, "processes.md");
        assert_eq!(page_of("remote.attach.again").file, "remote-enable.md");
    }

    #[test]
    fn each_claim_is_on_one_page() {
        let mut files = files();
        files.retain(|(name, _)| name.ends_with(".md"));
        let mut ids = BTreeSet::new();
        for system in [registry::LINUX, registry::NETBSD] {
            ids.extend(system.entries().into_iter().map(|entry| entry.id));
        }
        for (system, prefix) in registry::CRATE.into_iter().zip(["", "linux.", "netbsd."]) {
            ids.extend(system.entries().into_iter().map(|entry| prefix.to_owned() + &entry.id));
        }
        for id in ids {
            let anchor = format!(" id=\"{id}\"");
            let times: usize = files.iter().map(|(_, text)| text.matches(&anchor).count()).sum();
            assert_eq!(times, 1, "{id}");
        }
    }

    #[test]
    fn each_registry_is_read() {
        let systems = [registry::LINUX, registry::NETBSD].into_iter().chain(registry::CRATE);
        let read: Vec<_> = systems.flat_map(|system| system.files).copied().collect();
        for (name, _) in FILES {
            assert!(read.contains(name), "{name}: its claims are on no page");
        }
    }

    #[test]
    fn titles_differ() {
        let titles: BTreeSet<_> = PAGES.iter().map(|page| &page.title).collect();
        assert_eq!(titles.len(), PAGES.len());
    }
}
