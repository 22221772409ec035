//! io_uring operations for two examples. Selects the system.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;
        pub use linux::*;
    } else {
        mod unsupported;
        pub use unsupported::*;
    }
}
