//! The comparison of the registry with a source tree, on a tree that says something else, and the
//! locators of claims.

use kcov_book::drift::{Sources, collapse, report};
use kcov_conformance::claims::{Authority, Claims};
use kcov_conformance::declare::SYSTEMS;
use std::path::Path;
use std::{fs, io};

/// Whether nothing has drifted, and the report.
fn drift(tree: &Path) -> io::Result<(bool, String)> {
    let mut said = Vec::new();
    let same = report(&Sources { tree: Some(tree.into()), manual: None }, &mut said)?;
    Ok((same, String::from_utf8(said).expect("UTF-8")))
}

#[test]
fn what_is_gone_and_what_is_new_is_named_and_red() {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drift");
    let document = tree.join("Documentation/dev-tools");
    fs::create_dir_all(&document).expect("a directory");
    fs::write(tree.join("Makefile"), "VERSION = 7\nPATCHLEVEL = 3\n").expect("a file");
    let text = "Kept and new\n============\n\nIt is the kcov debugfs file.\nSheep are new.\n\n\
                .. code-block:: c\n\n    shut();\n";
    fs::write(document.join("kcov.rst"), text).expect("a file");

    fs::create_dir_all(tree.join("net")).expect("a directory");
    let sheep = "void shear(int a)\n{\n\tkcov_remote_start(a);\n}\n";
    fs::write(tree.join("net/sheep.c"), sheep).expect("a file");

    // As if README.md quoted the driver. A locator may have eight words.
    fs::create_dir_all(tree.join("kernel")).expect("a directory");
    let words = |number| {
        let text = include_str!("../../../README.md").split_whitespace().skip(1).take(number);
        format!("/* {} */\n", text.collect::<Vec<_>>().join("\n * "))
    };
    fs::write(tree.join("kernel/kcov.c"), words(8)).expect("a file");
    let (_, said) = drift(&tree).expect("a tree");
    assert!(!said.contains("quoted:"), "{said}");
    fs::write(tree.join("kernel/kcov.c"), words(9)).expect("a file");
    let (_, said) = drift(&tree).expect("a tree");
    let quoted: Vec<_> = said.lines().filter(|line| line.starts_with("quoted:")).collect();
    assert!(matches!(*quoted, [one] if one.starts_with("quoted: README.md:1: ")), "{quoted:?}");
    fs::remove_file(tree.join("kernel/kcov.c")).expect("removed");

    let (same, said) = drift(&tree).expect("a tree");
    assert!(!same, "{said}");
    let section = |line: &str| said.lines().any(|said| said == line);
    assert!(section("sections: net/sheep.c: shear: 1 begin, 0 claimed"), "{said}");
    let gone = "sections: drivers/usb/core/hub.c: hub_event: 0 begin, 1 claimed";
    assert!(section(gone), "{said}");
    let unclaimed: Vec<_> = said.lines().filter(|line| line.starts_with("unclaimed:")).collect();
    let new = [
        r#"unclaimed: Documentation/dev-tools/kcov.rst:5: "Sheep are new.""#,
        r#"unclaimed: Documentation/dev-tools/kcov.rst:9: "shut();""#,
    ];
    assert_eq!(unclaimed, new, "{said}");
    let gone = r#"gone: pc.same-call-same-records: "more or less stable coverage" is not in"#;
    assert!(said.lines().any(|line| line.starts_with(gone)), "{said}");
    assert!(said.contains("gone: kernel/kcov.c: "), "a file that is gone: {said}");
}

#[test]
fn a_tree_that_is_none_is_no_verdict() {
    assert!(drift(Path::new("/nowhere")).is_err());
}

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

/// The source of a claim about the crate is the crate's own documentation, which `drift` does not read.
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
