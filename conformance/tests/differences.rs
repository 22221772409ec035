//! The pages on differences are what their generators make of the snapshots and the claims.

use std::path::Path;

#[test]
fn the_page_is_up_to_date() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let snapshots = ["linux-6.1", "linux-6.12", "linux-7"]
        .map(|target| here.join("snapshots").join(format!("{target}.txt")));
    let page = kcov_conformance::differences::page(&snapshots).expect("the snapshots");
    let file = here.join("../docs/src/generated/differences-linux.md");
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        page == committed,
        "{} is stale; write the output of `cargo run -p kcov-conformance -- differences {}` there",
        file.display(),
        "conformance/snapshots/linux-{6.1,6.12,7}.txt",
    );
}

#[test]
fn the_page_on_systems_is_up_to_date() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/generated/differences-systems.md");
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kcov_conformance::systems::page() == committed,
        "{} is stale; write the output of `cargo run -p kcov-conformance -- systems` there",
        file.display(),
    );
}
