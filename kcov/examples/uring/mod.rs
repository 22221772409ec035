//! io_uring operations for two examples. Selects the system.

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))] {
        mod linux;
        pub use linux::*;
    } else {
        mod unsupported;
        pub use unsupported::*;
    }
}
