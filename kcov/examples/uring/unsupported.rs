//! Where there is no io_uring.
#![allow(dead_code)]

use std::fs::File;
use std::io;
use std::path::Path;

pub struct Polled(());

impl Polled {
    pub fn new() -> io::Result<Polled> {
        Err(io::Error::other("this system has no io_uring"))
    }

    pub fn nothing(&mut self) -> io::Result<()> {
        Ok(())
    }

    pub fn read(&mut self, _: &File) -> io::Result<()> {
        Ok(())
    }

    pub fn socket(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn work(_: &Path, _: u64) -> io::Result<()> {
    Polled::new().map(drop)
}
