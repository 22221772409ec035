//! What the systems do differently. The files export the same names.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;
        mod touched;
        pub(crate) use linux::{has_ended, wipe_in_children};
        pub(crate) use touched::Touched;
    } else {
        mod bsd;
        pub(crate) use bsd::{Touched, has_ended, wipe_in_children};
    }
}
