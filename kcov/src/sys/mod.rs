//! The one switch between systems: each file below offers the same names.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;
        mod unix;
        pub(crate) use {linux::*, unix::*};
    } else if #[cfg(target_os = "netbsd")] {
        mod netbsd;
        mod netbsd_errors;
        mod unix;
        pub(crate) use {netbsd::*, unix::*};
    } else {
        mod unsupported;
        pub(crate) use unsupported::*;
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "linux", any(target_arch = "x86", target_arch = "x86_64")))] {
        mod pkey;
        pub(crate) use pkey::Key;
    } else {
        mod no_pkey;
        pub(crate) use no_pkey::Key;
    }
}

// The table is data, so it is tested wherever the tests run.
#[cfg(all(test, not(target_os = "netbsd")))]
pub(crate) mod netbsd_errors;
