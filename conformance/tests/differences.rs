//! The pages on differences are what their generators make of the snapshots and the claims.

use kcov_conformance::{differences, systems};
use std::io;
use std::path::{Path, PathBuf};

fn check(page: &str, command: &str, targets: &[&str], make: fn(&[PathBuf]) -> io::Result<String>) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let snapshot = |target: &&str| here.join("snapshots").join(format!("{target}.txt"));
    let snapshots: Vec<PathBuf> = targets.iter().map(snapshot).collect();
    let file = here.join("../docs/src/generated").join(page);
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        make(&snapshots).expect("the snapshots") == committed,
        "{} is stale; write the output of `cargo run -p kcov-conformance -- {command} \
         conformance/snapshots/{{{}}}.txt` there",
        file.display(),
        targets.join(","),
    );
}

#[test]
fn the_page_on_linux_is_up_to_date() {
    let targets = ["linux-6.1", "linux-6.12", "linux-7"];
    check("differences-linux.md", "differences", &targets, differences::page);
}

#[test]
fn the_page_on_netbsd_is_up_to_date() {
    let targets = ["netbsd-9", "netbsd-10", "netbsd-10-vhci"];
    check("differences-netbsd.md", "differences", &targets, differences::page);
}

#[test]
fn the_page_on_systems_is_up_to_date() {
    let targets = ["linux-7", "linux-6.12", "linux-6.1", "netbsd-10-vhci", "netbsd-10", "netbsd-9"];
    check("differences-systems.md", "systems", &targets, systems::page);
}
