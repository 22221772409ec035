//! The one switch between systems: each file below offers the same names.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;
        mod unix;
        pub(crate) use {linux::*, unix::*};
    } else if #[cfg(target_os = "netbsd")] {
        mod netbsd;
        mod unix;
        pub(crate) use {netbsd::*, unix::*};
    } else {
        mod unsupported;
        pub(crate) use unsupported::*;
    }
}
