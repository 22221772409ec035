//! The command that compares the registry with a source tree, on a tree that says something else.

use std::fs;
use std::path::Path;
use std::process::Command;

fn drift(tree: &Path) -> (Option<i32>, String) {
    let mut drift = Command::new(env!("CARGO_BIN_EXE_kcov-conformance"));
    let output = drift.args(["drift", "--source"]).arg(tree).output().expect("the suite starts");
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn what_is_gone_and_what_is_new_is_named_and_red() {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drift");
    let document = tree.join("Documentation/dev-tools");
    fs::create_dir_all(&document).expect("a directory");
    fs::write(tree.join("Makefile"), "VERSION = 7\nPATCHLEVEL = 3\n").expect("a file");
    let text = "Kept and new\n============\n\nIt is the kcov debugfs file.\nSheep are new.\n";
    fs::write(document.join("kcov.rst"), text).expect("a file");

    fs::create_dir_all(tree.join("net")).expect("a directory");
    let sheep = "void shear(int a)\n{\n\tkcov_remote_start(a);\n}\n";
    fs::write(tree.join("net/sheep.c"), sheep).expect("a file");

    let (status, said) = drift(&tree);
    assert_eq!(status, Some(1), "{said}");
    let section = |line: &str| said.lines().any(|said| said == line);
    assert!(section("sections: net/sheep.c: shear: 1 begin, 0 claimed"), "{said}");
    let gone = "sections: drivers/usb/core/hub.c: hub_event: 0 begin, 1 claimed";
    assert!(section(gone), "{said}");
    let unclaimed: Vec<_> = said.lines().filter(|line| line.starts_with("unclaimed:")).collect();
    let new = r#"unclaimed: Documentation/dev-tools/kcov.rst:5: "Sheep are new.""#;
    assert_eq!(unclaimed, [new], "{said}");
    let gone = r#"gone: pc.same-call-same-records: "more or less stable coverage" is not in"#;
    assert!(said.lines().any(|line| line.starts_with(gone)), "{said}");
    assert!(said.contains("gone: kernel/kcov.c: "), "a file that is gone: {said}");
}

#[test]
fn a_tree_that_is_none_is_no_verdict() {
    let (status, _) = drift(Path::new("/nowhere"));
    assert_eq!(status, Some(69));
}
