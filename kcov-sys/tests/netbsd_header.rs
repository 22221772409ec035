//! Compares `kcov_sys::netbsd` with NetBSD's own `<sys/kcov.h>`. A C compiler checks one static
//! assertion for each definition.
//!
//! Not part of a plain `cargo test`; run `cargo test -p kcov-sys --test netbsd_header`. On NetBSD
//! that uses the machine's header. Elsewhere, set `KCOV_SYS_NETBSD_INCLUDE` to `usr/include` of a
//! release's `comp` set, or to several directories separated by colons, in search order.
#![cfg(unix)]

mod c;

use kcov_sys::netbsd::*;
use std::mem::offset_of;

const VARIABLE: &str = "KCOV_SYS_NETBSD_INCLUDE";

/// No header of this machine: the target is 64-bit x86 on any host.
const FLAGS: &[&str] = &[
    "-ffreestanding",
    "-nostdinc",
    "-m64",
    "-U__linux__",
    "-U__linux",
    "-Ulinux",
    "-U__gnu_linux__",
    "-D__NetBSD__=1",
];

/// Compiles the lines after the header. `Err` has the compiler's messages.
fn compile(lines: &str) -> Result<(), String> {
    let given = std::env::var(VARIABLE).ok().filter(|given| !given.is_empty());
    let default = cfg!(target_os = "netbsd").then(|| "/usr/include".to_owned());
    let directories = given.or(default).unwrap_or_else(|| {
        panic!("{VARIABLE} is not set: it has to name usr/include of a release of NetBSD")
    });
    let include: Vec<_> = directories.split(':').map(|place| format!("-isystem{place}")).collect();
    let flags: Vec<_> = FLAGS.iter().copied().chain(include.iter().map(String::as_str)).collect();
    c::compile(
        &flags,
        &format!("#include <sys/errno.h>\n#include <sys/ioccom.h>\n#include <sys/kcov.h>\n{lines}"),
    )
}

fn assertions(all: &[(&str, u64)]) -> String {
    all.iter().map(|(expression, value)| c::assertion(expression, *value)).collect()
}

/// The definitions in the headers of all releases, and this crate's values.
fn always() -> Vec<(&'static str, u64)> {
    let mut all = vec![
        ("KCOV_IOC_SETBUFSIZE", KCOV_IOC_SETBUFSIZE.into()),
        ("KCOV_IOC_ENABLE", KCOV_IOC_ENABLE.into()),
        ("KCOV_IOC_DISABLE", KCOV_IOC_DISABLE.into()),
        ("KCOV_MODE_NONE", KCOV_MODE_NONE as u64),
        ("KCOV_MODE_TRACE_PC", KCOV_MODE_TRACE_PC as u64),
        ("KCOV_MODE_TRACE_CMP", KCOV_MODE_TRACE_CMP as u64),
        ("KCOV_ENTRY_SIZE", KCOV_ENTRY_SIZE as u64),
        ("sizeof(kcov_int_t)", size_of::<kcov_int_t>() as u64),
        ("__builtin_types_compatible_p(kcov_int_t *, volatile uint64_t *)", 1),
    ];
    all.extend(kcov_sys::errno::netbsd::ALL.iter().map(|&(name, number)| (name, number as u64)));
    all
}

/// The additional definitions of NetBSD 10 and later.
fn remote() -> Vec<(&'static str, u64)> {
    vec![
        ("KCOV_IOC_REMOTE_ATTACH", KCOV_IOC_REMOTE_ATTACH.into()),
        ("KCOV_IOC_REMOTE_DETACH", KCOV_IOC_REMOTE_DETACH.into()),
        ("sizeof(struct kcov_ioc_remote_attach)", size_of::<kcov_ioc_remote_attach>() as u64),
        ("_Alignof(struct kcov_ioc_remote_attach)", align_of::<kcov_ioc_remote_attach>() as u64),
        (
            "__builtin_offsetof(struct kcov_ioc_remote_attach, subsystem)",
            offset_of!(kcov_ioc_remote_attach, subsystem) as u64,
        ),
        (
            "__builtin_offsetof(struct kcov_ioc_remote_attach, id)",
            offset_of!(kcov_ioc_remote_attach, id) as u64,
        ),
        ("sizeof(((struct kcov_ioc_remote_attach *)0)->subsystem)", 8),
        ("sizeof(((struct kcov_ioc_remote_attach *)0)->id)", 8),
        ("KCOV_REMOTE_VHCI", KCOV_REMOTE_VHCI),
        ("KCOV_REMOTE_VHCI_ID(0, 0)", kcov_remote_vhci_id(0, 0)),
        ("KCOV_REMOTE_VHCI_ID(1, 2)", kcov_remote_vhci_id(1, 2)),
        ("KCOV_REMOTE_VHCI_ID(7, ~0ull)", kcov_remote_vhci_id(7, u64::MAX)),
    ]
}

/// The macros that NetBSD 9's header lacks. A newer header must define all of them.
const REMOTE_MACROS: [&str; 4] =
    ["KCOV_IOC_REMOTE_ATTACH", "KCOV_IOC_REMOTE_DETACH", "KCOV_REMOTE_VHCI", "KCOV_REMOTE_VHCI_ID"];

fn definitions() -> Vec<(&'static str, u64)> {
    let lacks = |name: &str| compile(&format!("#ifndef {name}\n#error none\n#endif\n")).is_err();
    match REMOTE_MACROS.iter().filter(|name| lacks(name)).count() {
        count if count == REMOTE_MACROS.len() => always(),
        _ => [always(), remote()].concat(),
    }
}

#[test]
fn every_definition() {
    compile("").expect("the header can be compiled");
    let definitions = definitions();
    println!("{} definitions compared", definitions.len());
    compile(&assertions(&definitions)).unwrap();
}

#[test]
fn every_wrong_value_is_noticed() {
    for (expression, value) in definitions() {
        let error = compile(&assertions(&[(expression, value ^ 1)])).unwrap_err();
        assert!(error.contains("static assertion failed"), "{expression}: {error}");
    }
}
