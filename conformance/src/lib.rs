//! Proves on a running kernel what the documents and drivers of the coverage device kcov promise.
//!
//! Claims are data, in `claims/`; each checked claim has exactly one check of the same id, in
//! `checks/`. Checks reach the kernel through `raw` only, which knows `kcov-sys` and nothing of
//! the safe crate, so that the library cannot agree with itself. See the package's README.

pub mod check;
pub mod checks;
pub mod claims;
pub mod cli;
pub mod declare;
pub mod drift;
pub mod errno;
pub mod helper;
pub mod kernel;
pub mod lockstep;
pub mod model;
pub mod plan;
pub mod raw;
pub mod reference;
pub mod report;
pub mod runner;

// The one switch between systems. Each offers the same names: in `raw` the calls and probes, in
// `checks` the checks, the registries and the system's word, in `lockstep` how operations are done.
cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        #[path = "raw/linux/mod.rs"]
        mod system_raw;
        #[path = "checks/linux/mod.rs"]
        mod linux;
        #[path = "lockstep/linux.rs"]
        mod system_lockstep;
        use linux as system;
    } else if #[cfg(target_os = "netbsd")] {
        #[path = "raw/netbsd/mod.rs"]
        mod system_raw;
        #[path = "checks/netbsd/mod.rs"]
        mod netbsd;
        #[path = "lockstep/netbsd.rs"]
        mod system_lockstep;
        use netbsd as system;
    } else {
        compile_error!("the suite knows no kcov device of this system");
    }
}

/// The programs of the guide for porting have to compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/porting.md")]
mod porting {}
