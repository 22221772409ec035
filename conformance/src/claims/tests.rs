//! The rules for every registry file.

use super::{Authority, Claim, Claims, FILES, Status, parse};
use crate::declare::SYSTEMS;
use crate::kernel::Version;
use std::collections::BTreeSet;

/// What keeps a check from being made. Hardware, a kernel or a guest may be missing, a moment cannot
/// be chosen, or a program cannot see the effect.
const OBSTACLES: &[&str] = &["hardware", "guest", "timing", "state", "view", "survivor"];

fn all() -> impl Iterator<Item = Claim> {
    FILES.iter().flat_map(|(file, text)| parse(file, text))
}

#[test]
fn ids_are_unique_and_well_formed() {
    for system in SYSTEMS {
        let mut seen = BTreeSet::new();
        for Claim { id, .. } in Claims::of(system).0 {
            assert!(id.contains('.'), "{id} has no topic");
            for word in id.split(['.', '-']) {
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
                assert!(
                    !word.is_empty() && word.chars().all(plain),
                    "{id} is not lower-case words"
                );
            }
            assert!(!id.contains(system), "{id} names the system");
            assert!(seen.insert(id.clone()), "{id} is claimed twice");
        }
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
        // A word that looks like an errno is one.
        let words = claim.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let shaped = |word: &&str| {
            word.len() > 3 && word.starts_with('E') && !word.contains(char::is_lowercase)
        };
        for word in words.filter(shaped) {
            assert_eq!(super::errno_in(word), Some(word), "{id}: {word} is no errno");
        }
        for locator in claim.locators() {
            let words = locator.split_whitespace().count();
            assert!((1..=8).contains(&words), "{id}: a locator of {words} words");
        }
        if let (Some(since), Some(until)) = (claim.since, claim.until) {
            assert!(since < until, "{id} holds for no kernel");
        }
    }
}

#[test]
fn a_claim_without_a_check_has_a_reason_and_no_needs() {
    for claim in all().filter(|claim| claim.status() != Status::Checked) {
        assert!(claim.reason.is_some(), "{} gives no reason", claim.id);
        assert!(claim.missing.iter().all(|it| OBSTACLES.contains(&&**it)), "{}", claim.id);
        assert!(claim.needs.is_empty() && claim.without.is_empty(), "{}: needs", claim.id);
    }
}

#[test]
fn what_a_check_proves_is_not_called_untestable() {
    for system in SYSTEMS {
        let claims: Vec<_> = Claims::of(system).0;
        assert_eq!(proved_elsewhere(&claims), [""; 0]);
    }
}

/// Refusals without a check that share errno and place in the source with a checked claim.
fn proved_elsewhere(claims: &[Claim]) -> Vec<String> {
    let one_reason = |claim: &Claim| claim.errno == Some("ENOMEM");
    let same = |open: &Claim, proof: &Claim| {
        let words = |one: &Claim, other: &Claim| {
            one.locators().any(|words| other.locators().any(|all| all.contains(words)))
        };
        let place = words(open, proof) || words(proof, open);
        open.errno.is_some()
            && open.errno == proof.errno
            && open.source == proof.source
            && (place || one_reason(open) && open.section == proof.section)
    };
    let of = |wanted: fn(Status) -> bool| claims.iter().filter(move |claim| wanted(claim.status()));
    let open = of(|status| status == Status::Untestable);
    open.flat_map(|open| {
        let proofs = of(|status| status == Status::Checked).filter(move |proof| same(open, proof));
        proofs.map(|proof| format!("{} is what {} proves", open.id, proof.id)).collect::<Vec<_>>()
    })
    .collect()
}

/// Every check that a reason names exists and is not itself an excuse.
#[test]
fn the_checks_that_a_reason_names_exist() {
    for system in SYSTEMS {
        let claims = Claims::of(system);
        for claim in claims.iter() {
            let words = claim.reason.iter().flat_map(|reason| reason.split([' ', ';', ',']));
            let topics = |word: &&str| {
                let topic = word.split_once('.').map(|(topic, _)| format!("{topic}."));
                topic.is_some_and(|topic| claims.iter().any(|claim| claim.id.starts_with(&topic)))
            };
            for named in words.filter(topics) {
                let proof = |claim: &Claim| {
                    claim.status() == Status::Checked && claim.id.starts_with(named)
                };
                assert!(claims.iter().any(proof), "{}: no check {named}", claim.id);
            }
        }
    }
}

#[test]
fn each_file_is_of_one_kind_of_authority() {
    for (file, text) in FILES {
        for claim in parse(file, text) {
            let expected = match claim.authority {
                Authority::Document => file.ends_with("-document.toml"),
                Authority::Driver => file.ends_with("-driver.toml"),
                Authority::Message => file.starts_with("linux-proposed-"),
                Authority::Crate => file.starts_with("api"),
            };
            assert!(expected, "{} in {file}", claim.id);
        }
    }
}

#[test]
fn versions_bound_a_claim() {
    let claim = |bounds: &str| {
        let text = format!(
            "authority = 'driver'\nsource = 's'\n\
             claim = [{{ id = 'a.b', at = ['s', 'l'], text = 'c.', {bounds} }}]"
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
