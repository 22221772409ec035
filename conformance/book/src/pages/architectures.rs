//! The differences between Linux's architectures, as the targets declare them. A run of a target
//! proves its declaration.

use super::differences::{all_targets, cell, declaration, home};
use super::registry::{CRATE, Entry, LINUX};
use super::{MARK, WRITING};
use kcov_conformance::feature::Feature;
use kcov_conformance::kernel::Version;
use kcov_conformance::plan;
use kcov_sys::ioc::Encoding;
use kcov_sys::linux::Requests;
use kcov_vm::arch::Arch;
use kcov_vm::target::{Kind, Target};
use std::collections::BTreeMap;

/// The target that the others are compared with, and its interface.
const USUAL: (&str, Version) = ("linux-7", Version(7, 3));

/// The words and requests of each architecture, and the checks that only some of them run.
pub(super) fn page() -> String {
    let mut targets = all_targets();
    targets.retain(|it| {
        it.name == USUAL.0 || it.kind != Kind::Netbsd && programs(it).name != Arch::usual().name
    });
    let mut page = format!(
        "{MARK}# Differences between architectures\n\n\
         The suite runs on these targets. They declare the width and order of the words in a \
         buffer, and the size of a page; each run proves the declaration.\n\n\
         | Target | Programs | Word | Order | Page | `KCOV_INIT_TRACE` | `KCOV_ENABLE` |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for target in &targets {
        page.push_str(&row(target));
    }
    page.push_str(
        "\n## Checks that only some architectures run\n\n\
         | Claim | Skipped on | Page |\n|---|---|---|\n",
    );
    let mut skipped: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for target in &targets {
        for id in skips(target) {
            skipped.entry(id).or_default().push(&target.name);
        }
    }
    let of_linux = CRATE.iter().filter(|part| ["", LINUX.word].contains(&part.word));
    for claim in [LINUX].iter().chain(of_linux).flat_map(|part| part.entries()) {
        if let Some(names) = skipped.get(&claim.id).filter(|names| names.len() < targets.len()) {
            page.push_str(&claim_row(&claim, names));
        }
    }
    page
}

/// The architecture of the target's programs.
fn programs(target: &Target) -> &'static Arch {
    target.userland.unwrap_or(target.arch)
}

fn row(target: &Target) -> String {
    let features = declaration(&target.declares);
    let long = if features.has(Feature::Words32) { 4 } else { 8 };
    let order = if features.has(Feature::BigEndian) { "big-endian" } else { "little-endian" };
    let sizes = [(Feature::Pages16K, 16), (Feature::Pages64K, 64)];
    let page = sizes.iter().find(|size| features.has(size.0)).map_or(4, |size| size.1);
    let encoding = match target.arch.make {
        "powerpc" => Encoding::LINUX_MIPS_POWERPC,
        _ => Encoding::LINUX_GENERIC,
    };
    let requests = Requests::new(encoding, long);
    format!(
        "| `{}` | {} | {long} bytes | {order} | {page} KiB | `{:#x}` | `{:#x}` |\n",
        target.name,
        programs(target).machine,
        requests.init_trace,
        requests.enable,
    )
}

/// The checks that the target's declaration skips.
fn skips(target: &Target) -> Vec<String> {
    let mut plan = Vec::new();
    plan::write(USUAL.1, &declaration(&target.declares), &mut plan).expect(WRITING);
    let plan = String::from_utf8(plan).expect("the plan is text");
    let lines = plan.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    lines.filter(|line| line[1] == "skipped").map(|line| line[0].to_owned()).collect()
}

fn claim_row(claim: &Entry, skipped_on: &[&str]) -> String {
    let names: Vec<_> = skipped_on.iter().map(|name| format!("`{name}`")).collect();
    format!("| {} | {} | {} |\n", cell(claim), names.join(", "), home(claim))
}

#[cfg(test)]
mod tests {
    use super::page;

    #[track_caller]
    fn row(start: &str) -> String {
        page().lines().find(|line| line.starts_with(start)).expect(start).to_owned()
    }

    #[test]
    fn words_orders_pages_and_requests_are_the_architectures() {
        let expected = "armv7l | 4 bytes | little-endian | 4 KiB | `0x80046301` | `0x6364` |";
        assert_eq!(row("| `linux-7-arm` |"), format!("| `linux-7-arm` | {expected}"));
        let expected = "ppc64 | 8 bytes | big-endian | 64 KiB | `0x40086301` | `0x20006364` |";
        assert_eq!(row("| `linux-7-ppc64` |"), format!("| `linux-7-ppc64` | {expected}"));
    }

    /// A check that needs the kernel's `long` to have 32 bits is skipped on 64-bit kernels only.
    #[test]
    fn a_check_that_an_architecture_skips_is_a_row() {
        let page = page();
        let overflow = "#remote.area-size-overflow-is-refused)";
        let row = page.lines().find(|line| line.contains(overflow)).expect(overflow);
        assert!(row.contains("`linux-7-s390x`") && !row.contains("`linux-7-arm`"), "{row}");
    }
}
