//! What the systems do differently. The files export the same names.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;
        pub(crate) use linux::has_ended;
    } else {
        mod bsd;
        pub(crate) use bsd::has_ended;
    }
}
