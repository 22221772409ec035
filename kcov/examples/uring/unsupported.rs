//! Where there is no io_uring.
#![allow(dead_code)]

use std::io;
use std::path::Path;

pub fn nothing_by_a_kernel_thread() -> io::Result<()> {
    Err(io::Error::other("this system has no io_uring"))
}

pub fn work(_: &Path, _: u64) -> io::Result<()> {
    nothing_by_a_kernel_thread()
}
