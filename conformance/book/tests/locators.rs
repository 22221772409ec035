//! The locators of claims.

use kcov_book::drift::collapse;
use kcov_conformance::claims::{Authority, Claims};
use kcov_conformance::declare::SYSTEMS;
use std::fs;
use std::path::Path;

#[test]
fn locators_are_collapsed() {
    for claims in SYSTEMS.iter().map(|system| Claims::of(system)) {
        for claim in claims.iter() {
            for locator in claim.locators() {
                assert_eq!(collapse(locator), locator, "{}: not in its collapsed form", claim.id);
            }
        }
    }
}

/// The crate's documentation contains the promises of the crate. `drift` does not cover them.
#[test]
fn claims_about_the_crate_are_found_in_it() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for claims in SYSTEMS.iter().map(|system| Claims::of(system)) {
        for claim in claims.iter().filter(|claim| claim.authority == Authority::Crate) {
            let text = fs::read_to_string(workspace.join(&claim.source)).expect("a source");
            // A sentence can continue on the next line of a comment.
            let words = text.lines().map(|line| line.trim().trim_start_matches(['/', '!']));
            let text = collapse(&words.collect::<Vec<_>>().join(" "));
            let found = text.contains(&collapse(&claim.locator));
            assert!(found, "{}: `{}` is not in {}", claim.id, claim.locator, claim.source);
        }
    }
}
