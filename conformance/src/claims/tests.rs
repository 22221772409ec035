//! The rules that every registry file keeps, and the coverage snapshot.

use super::{Authority, Claim, FILES, Status, parse};
use crate::declare::SYSTEMS;
use crate::drift::collapse;
use crate::kernel::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

fn all() -> impl Iterator<Item = Claim> {
    FILES.iter().flat_map(|(file, text)| parse(file, text))
}

#[test]
fn ids_are_unique_and_well_formed() {
    for system in SYSTEMS {
        let of_it = |file: &str| file.contains(system) || file == "api.toml";
        let files = FILES.iter().filter(|(file, _)| of_it(file));
        well_formed(system, files.flat_map(|(file, text)| parse(file, text)));
    }
}

fn well_formed(system: &str, claims: impl Iterator<Item = Claim>) {
    let mut seen = BTreeSet::new();
    for claim in claims {
        let id = &claim.id;
        assert!(seen.insert(id.clone()), "{id} is claimed twice");
        assert!(id.contains('.'), "{id} has no topic");
        for word in id.split(['.', '-']) {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            assert!(!word.is_empty() && word.chars().all(plain), "{id} is not of lower-case words");
        }
        assert!(!id.contains(system), "{id} names the system");
    }
}

#[test]
fn every_field_says_something() {
    for claim in all() {
        let id = &claim.id;
        for field in [&claim.text, &claim.source, &claim.section, &claim.locator] {
            assert!(!field.trim().is_empty(), "{id} has an empty field");
            assert_eq!(field.trim(), field, "{id} has blanks around a field");
        }
        assert!(claim.text.ends_with('.'), "{id}: the claim is not a sentence");
        for locator in claim.locators() {
            let words = locator.split_whitespace().count();
            assert!((1..=8).contains(&words), "{id}: a locator of {words} words");
            assert_eq!(collapse(locator), locator, "{id}: not in its collapsed form");
        }
        if let (Some(since), Some(until)) = (claim.since, claim.until) {
            assert!(since < until, "{id} holds for no kernel");
        }
    }
}

#[test]
fn a_claim_without_a_check_has_a_reason() {
    for claim in all() {
        let needed = matches!(claim.status, Status::Informative | Status::Untestable);
        let allowed = needed || claim.status == Status::Unchecked;
        assert!(claim.reason.is_some() || !needed, "{} gives no reason", claim.id);
        assert!(claim.reason.is_none() || allowed, "{} gives a reason and a check", claim.id);
    }
}

#[test]
fn each_file_is_of_one_kind_of_authority() {
    for (file, text) in FILES {
        for claim in parse(file, text) {
            let expected = match claim.authority {
                Authority::Document => file.ends_with("-document.toml"),
                Authority::Header | Authority::Driver => file.ends_with("-driver.toml"),
                Authority::Message => file.starts_with("linux-proposed-"),
                Authority::Crate => file.starts_with("api"),
            };
            assert!(expected, "{} in {file}", claim.id);
        }
    }
}

/// What the crate promises stands in its documentation, which nobody else compares.
#[test]
fn claims_about_the_crate_are_found_in_it() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (file, text) in FILES {
        for claim in parse(file, text) {
            if claim.authority != Authority::Crate {
                continue;
            }
            let text = fs::read_to_string(workspace.join(&claim.source)).unwrap();
            // Sentences go on in the next line of a comment.
            let words = text.lines().map(|line| line.trim().trim_start_matches(['/', '!']));
            let text = collapse(&words.collect::<Vec<_>>().join(" "));
            let found = text.contains(&collapse(&claim.locator));
            assert!(found, "{}: `{}` is not in {}", claim.id, claim.locator, claim.source);
        }
    }
}

#[test]
fn versions_bound_a_claim() {
    let claim = |bounds: &str| {
        let text = format!(
            "[[claim]]\nid = 'a.b'\ntext = 'c.'\nauthority = 'driver'\nsource = 's'\n\
             section = 's'\nlocator = 'l'\nstatus = 'unchecked'\n{bounds}"
        );
        parse("test", &text).remove(0)
    };
    let since = claim("since = '7.2'");
    assert!(since.excludes(Version(6, 12)).is_some());
    assert_eq!(since.excludes(Version(7, 2)), None);
    let until = claim("until = '7.2'");
    assert_eq!(until.excludes(Version(6, 12)), None);
    assert!(until.excludes(Version(7, 2)).is_some());
}

#[test]
fn coverage() {
    for (file, text) in FILES {
        let claims = parse(file, text);
        let mut counts = BTreeMap::new();
        let mut list = String::new();
        for claim in &claims {
            let status = format!("{:?}", claim.status).to_lowercase();
            writeln!(list, "{} {status}", claim.id).unwrap();
            *counts.entry(status).or_insert(0) += 1;
        }
        let mut snapshot = format!("{} claims", claims.len());
        for (status, count) in counts {
            write!(snapshot, ", {count} {status}").unwrap();
        }
        let name = file.trim_end_matches(".toml");
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, format!("{snapshot}\n\n{list}"));
        });
    }
}
