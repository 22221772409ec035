//! The claims about one system, by topic.

use super::registry::{CRATE, Entry, System};
use super::{MARK, WRITING, plain};
use std::fmt::Write as _;

/// The first part of an id, with the title of its section. Others become titles themselves.
const TOPICS: &[(&str, &str)] = &[
    ("open", "Opening and file operations"),
    ("size", "Size of the buffer"),
    ("map", "Mapping"),
    ("truncate", "Truncation"),
    ("request", "Unknown ioctls"),
    ("enable", "Enabling"),
    ("disable", "Disabling"),
    ("pc", "Program counters"),
    ("cmp", "Comparisons"),
    ("thread", "Threads"),
    ("close", "Closing"),
    ("fork", "Fork"),
    ("exec", "Exec"),
    ("remote", "Remote coverage"),
    ("faults", "Lack of memory"),
];

pub(super) fn page(system: System) -> String {
    let entries = system.entries();
    let mut page = String::from(MARK);
    count(&mut page, &entries);
    let mut topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
    for entry in &entries {
        if !topics.contains(&topic(entry)) {
            topics.push(topic(entry));
        }
    }
    for name in topics {
        let (promises, rest): (Vec<_>, Vec<_>) = entries
            .iter()
            .filter(|entry| topic(entry) == name)
            .partition(|entry| entry.status != "informative");
        if promises.is_empty() && rest.is_empty() {
            continue;
        }
        let title =
            TOPICS.iter().find(|(topic, _)| *topic == name).map_or(name, |(_, title)| title);
        writeln!(page, "### {title}\n").expect(WRITING);
        list(&mut page, "", &promises);
        if !rest.is_empty() {
            writeln!(
                page,
                "<details><summary>{} more without observable effects</summary>\n",
                rest.len()
            )
            .expect(WRITING);
            list(&mut page, "", &rest);
            page.push_str("</details>\n\n");
        }
    }
    page
}

/// The claims about the safe crate. An id can differ in meaning between the systems, so the anchors
/// of claims about one system start with its name.
pub(super) fn crate_page() -> String {
    let mut page = String::from(MARK);
    for (system, prefix) in CRATE.into_iter().zip(["", "linux.", "netbsd."]) {
        let entries = system.entries();
        writeln!(page, "## On {}\n", system.name).expect(WRITING);
        count(&mut page, &entries);
        list(&mut page, prefix, &entries.iter().collect::<Vec<_>>());
    }
    page
}

fn count(page: &mut String, entries: &[Entry]) {
    let with = |status| entries.iter().filter(|entry| entry.status == status).count();
    write!(page, "{} claims. A check with the same id proves {}", entries.len(), {
        match with("checked") {
            all if all == entries.len() => "each".to_owned(),
            some => format!("{some} of them"),
        }
    })
    .expect(WRITING);
    for (status, what) in [
        ("unchecked", "have no check yet"),
        ("untestable", "are untestable"),
        ("informative", "have no observable effects"),
    ] {
        if with(status) > 0 {
            write!(page, "; {} {what}", with(status)).expect(WRITING);
        }
    }
    page.push_str(".\n\n");
}

fn topic(entry: &Entry) -> &str {
    entry.id.split('.').next().unwrap_or_default()
}

fn list(page: &mut String, prefix: &str, entries: &[&Entry]) {
    if entries.is_empty() {
        return;
    }
    page.push_str("<dl class=\"claims\">\n");
    for entry in entries {
        let id = &entry.id;
        let anchor = format!("{prefix}{id}");
        write!(
            page,
            "<dt id=\"{anchor}\"><a href=\"#{anchor}\"><code>{id}</code></a></dt>\n<dd>{}",
            plain(&entry.text)
        )
        .expect(WRITING);
        if let Some(errno) = &entry.errno {
            write!(page, " <strong>{errno}</strong>").expect(WRITING);
        }
        if let Some(instead) = &entry.disagrees {
            write!(page, "<br><em>The kernel differs:</em> {}", plain(instead)).expect(WRITING);
        }
        write!(page, "<br><small>{}, {}", plain(&entry.source), plain(&entry.section))
            .expect(WRITING);
        if let Some(releases) = entry.releases() {
            write!(page, " · {releases}").expect(WRITING);
        }
        if entry.status != "checked" && entry.status != "informative" {
            write!(page, " · {}", entry.status).expect(WRITING);
        }
        if let Some(reason) = &entry.reason {
            write!(page, " · {}", plain(reason)).expect(WRITING);
        }
        page.push_str("</small></dd>\n");
    }
    page.push_str("</dl>\n\n");
}

#[cfg(test)]
mod tests {
    use super::{crate_page, page};
    use crate::pages::registry::{CRATE, LINUX, NETBSD};

    #[test]
    fn each_claim_has_its_anchor_once() {
        let mut pages: Vec<_> = [LINUX, NETBSD].map(|system| (system, "", page(system))).into();
        pages.extend(
            CRATE
                .into_iter()
                .zip(["", "linux.", "netbsd."])
                .map(|(system, prefix)| (system, prefix, crate_page())),
        );
        for (system, prefix, page) in pages {
            for entry in system.entries() {
                let anchor = format!("<dt id=\"{prefix}{}\">", entry.id);
                assert_eq!(page.matches(&anchor).count(), 1, "{anchor}");
            }
        }
    }

    #[test]
    fn an_error_a_release_and_a_disagreement_are_told() {
        let page = page(LINUX);
        let of = |id: &str| {
            let start = page.find(&format!("<dt id=\"{id}\">")).expect(id);
            page[start..].split("</dd>").next().unwrap_or_default().to_owned()
        };
        assert!(of("enable.busy-if-thread-already-enabled").contains("<strong>EBUSY</strong>"));
        assert!(of("enable.busy-if-thread-collects-remotely").contains(" · before 7.2"));
        assert!(of("pc.place.interrupts-add-nothing").contains("The kernel differs"));
        assert!(of("remote.section.zero-area").contains(" · untestable"));
    }
}
