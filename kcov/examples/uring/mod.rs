//! io_uring operations for two examples, each of which uses some. They fail on systems without
//! io_uring, and on architectures for which the crate `io-uring` does not compile.
#![allow(dead_code)]

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))] {
        mod linux;
        pub use linux::*;
    } else {
        use std::ffi::CStr;
        use std::fs::File;
        use std::io;
        use std::path::Path;

        pub struct Workers(());

        impl Workers {
            pub fn new() -> io::Result<Workers> {
                Err(io::Error::other("this example has no io_uring here"))
            }

            pub fn nothing(&mut self) -> io::Result<()> {
                Ok(())
            }

            pub fn read(&mut self, _: &File) -> io::Result<()> {
                Ok(())
            }

            pub fn make_directory(&mut self, _: &CStr) -> io::Result<()> {
                Ok(())
            }
        }

        pub fn work(_: &Path, _: u64) -> io::Result<()> {
            Workers::new().map(drop)
        }
    }
}
