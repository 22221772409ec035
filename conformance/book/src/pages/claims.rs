//! Claims as text, with what both systems share.

use super::registry::{CRATE, Entry, LINUX, NETBSD, with_linux_names};
use super::{MARK, WRITING, plain};
use std::fmt::Write as _;

/// The claims with one id: about one system, or both.
pub(super) struct Claim {
    id: String,
    linux: Option<Entry>,
    netbsd: Option<Entry>,
}

/// All claims in Linux's order, then those about NetBSD alone.
pub(super) fn of_both_systems() -> Vec<Claim> {
    let mut theirs = NETBSD.entries();
    let mut all = Vec::new();
    for linux in LINUX.entries() {
        let at = theirs.iter().position(|netbsd| netbsd.id == linux.id);
        let netbsd = at.map(|at| theirs.remove(at));
        all.push(Claim { id: linux.id.clone(), linux: Some(linux), netbsd });
    }
    let only = |netbsd: Entry| Claim { id: netbsd.id.clone(), linux: None, netbsd: Some(netbsd) };
    all.extend(theirs.into_iter().map(only));
    all
}

impl Claim {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn sides(&self) -> [Option<&Entry>; 2] {
        [self.linux.as_ref(), self.netbsd.as_ref()]
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sides().into_iter().flatten()
    }

    pub(super) fn is_of_both(&self) -> bool {
        self.entries().count() == 2
    }

    pub(super) fn is_an_error(&self) -> bool {
        self.entries().any(|entry| entry.errno.is_some())
    }

    /// Whether the systems behave alike: only the ioctl's name differs.
    pub(super) fn is_the_same(&self) -> bool {
        let [Some(linux), Some(netbsd)] = self.sides() else { return false };
        linux.errno == netbsd.errno
            && (&linux.disagrees, linux.releases()) == (&netbsd.disagrees, netbsd.releases())
            && with_linux_names(&netbsd.text) == linux.text
    }

    /// The text, once if `same` makes the systems' texts equal.
    pub(super) fn text(&self, same: impl Fn(&Entry) -> String) -> String {
        if let [Some(linux), Some(netbsd)] = self.sides() {
            if same(linux) == same(netbsd) {
                return told(&Entry { text: same(linux), ..linux.clone() });
            }
            return format!("Linux: {}<br>NetBSD: {}", told(linux), told(netbsd));
        }
        self.entries().map(told).collect()
    }

    /// The sources, with releases and status.
    pub(super) fn origin(&self) -> String {
        self.entries().map(origin).collect::<Vec<_>>().join("; ")
    }
}

fn told(entry: &Entry) -> String {
    let text = plain(&entry.text);
    match &entry.disagrees {
        Some(instead) => format!("{text}<br><em>The kernel differs:</em> {}", plain(instead)),
        None => text,
    }
}

fn origin(entry: &Entry) -> String {
    let mut text = format!("{}, {}", plain(&entry.source), plain(&entry.section));
    if let Some(releases) = entry.releases() {
        write!(text, " · {releases}").expect(WRITING);
    }
    if entry.status != "checked" && entry.status != "informative" {
        write!(text, " · {}", entry.status).expect(WRITING);
    }
    if let Some(reason) = &entry.reason {
        write!(text, " · {}", plain(reason)).expect(WRITING);
    }
    text
}

const TITLES: [&str; 4] =
    ["Linux and NetBSD alike", "Different on Linux and NetBSD", "Linux only", "NetBSD only"];

/// The title over a claim.
fn part(claim: &Claim) -> &'static str {
    let [alike, different, linux, netbsd] = TITLES;
    match claim.sides() {
        [Some(_), Some(_)] if claim.is_the_same() => alike,
        [Some(_), Some(_)] => different,
        [Some(_), None] => linux,
        [None, _] => netbsd,
    }
}

/// The claims that are no errors, by the systems that they are about.
pub(super) fn section(claims: &[Claim]) -> String {
    let (seen, unseen): (Vec<_>, Vec<_>) =
        claims.iter().partition(|claim| claim.entries().any(is_observable));
    let mut page = String::new();
    if !seen.is_empty() {
        page.push_str("## Claims\n\n");
    }
    for title in TITLES {
        let chosen: Vec<_> = seen.iter().filter(|claim| part(claim) == title).collect();
        if !chosen.is_empty() {
            writeln!(page, "### {title}\n").expect(WRITING);
            list(&mut page, chosen.into_iter().map(|claim| shown(claim)));
        }
    }
    if !unseen.is_empty() {
        let number = unseen.len();
        writeln!(page, "<details><summary>{number} more without observable effects</summary>\n")
            .expect(WRITING);
        list(&mut page, unseen.into_iter().map(shown));
        page.push_str("</details>\n\n");
    }
    page
}

fn is_observable(entry: &Entry) -> bool {
    entry.status != "informative"
}

/// The anchor, the id, the text and the sources.
fn shown(claim: &Claim) -> [String; 4] {
    let text = claim.text(|entry| with_linux_names(&entry.text));
    [claim.id.clone(), claim.id.clone(), text, claim.origin()]
}

/// The claims about the safe crate. An id can differ in meaning between the systems, so the anchors
/// of claims about one system start with its name.
pub(super) fn crate_page() -> String {
    let mut page = String::from(MARK);
    for (system, prefix) in CRATE.into_iter().zip(["", "linux.", "netbsd."]) {
        let entries = system.entries();
        writeln!(page, "## On {}\n", system.name).expect(WRITING);
        let of = |entry: Entry| {
            [format!("{prefix}{}", entry.id), entry.id.clone(), told(&entry), origin(&entry)]
        };
        list(&mut page, entries.into_iter().map(of));
    }
    page
}

fn list(page: &mut String, claims: impl Iterator<Item = [String; 4]>) {
    page.push_str("<dl class=\"claims\">\n");
    for [anchor, id, text, origin] in claims {
        writeln!(
            page,
            "<dt id=\"{anchor}\"><a href=\"#{anchor}\"><code>{id}</code></a></dt>\n\
             <dd>{text}<br><small>{origin}</small></dd>"
        )
        .expect(WRITING);
    }
    page.push_str("</dl>\n\n");
}

#[cfg(test)]
mod tests {
    use crate::pages::reference::page_of;

    #[test]
    fn a_release_a_disagreement_and_a_status_are_told() {
        let of = |id: &str| {
            let page = page_of(id).text();
            let start = page.find(&format!("<dt id=\"{id}\">")).expect(id);
            page[start..].split("</dd>").next().unwrap_or_default().to_owned()
        };
        assert!(of("remote.beside-local").contains(" · since 7.2"));
        assert!(of("pc.place.interrupts-add-nothing").contains("The kernel differs"));
        assert!(of("remote.section.zero-area").contains(" · untestable"));
        assert_eq!(of("pc.storing-zero-starts-over").matches("Linux: ").count(), 0);
    }
}
