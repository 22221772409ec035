//! What two examples have done by an io_uring: the one switch between systems.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;
        pub use linux::*;
    } else {
        mod unsupported;
        pub use unsupported::*;
    }
}
