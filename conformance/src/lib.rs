//! Proves on a running kernel the promises of documents and drivers about kcov, the kernel coverage
//! device.
//!
//! Claims are data, in `claims/`. Each checked claim has exactly one check with the same id, in
//! `checks/`. Checks reach the kernel only through `raw`, which uses `kcov-sys` and not the safe
//! crate, so the library cannot confirm its own errors. See the package's README.

mod check;
pub mod checks;
pub mod claims;
pub mod cli;
pub mod declare;
mod errno;
pub mod feature;
pub mod kernel;
pub mod lockstep;
pub mod plan;
mod raw;
mod report;
mod runner;

// The only switch between systems.
cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        /// What the suite has of its own for Linux: checks, the calls and probes that they use, and
        /// the operations of lockstep. Every system exports the same names.
        mod linux {
            pub(crate) mod checks;
            pub(crate) mod lockstep;
            pub(crate) mod raw;

            pub(crate) use kcov_sys::errno::linux::ALL as ERRNOS;
            pub(crate) const WORD: &str = "linux";
        }
        use linux as system;
    } else if #[cfg(target_os = "netbsd")] {
        /// The same for NetBSD.
        mod netbsd {
            pub(crate) mod checks;
            pub(crate) mod lockstep;
            pub(crate) mod raw;

            pub(crate) use kcov_sys::errno::netbsd::ALL as ERRNOS;
            pub(crate) const WORD: &str = "netbsd";
        }
        use netbsd as system;
    } else {
        compile_error!("the suite knows no kcov device of this system");
    }
}

/// The programs in the porting guide must compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/porting.md")]
mod porting {}
