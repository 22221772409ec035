//! The io_uring parts. Each example uses some of them.
#![allow(dead_code)]

use io_uring::{IoUring, opcode, squeue, types};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

// ANCHOR: workers
/// A ring whose operations run on kernel workers. It inherits the common handle of the thread that
/// makes it.
pub struct Workers(IoUring);

impl Workers {
    pub fn new() -> io::Result<Workers> {
        IoUring::new(8).map(Workers)
    }

    pub fn nothing(&mut self) -> io::Result<()> {
        // SAFETY: the operation refers to no memory or file.
        unsafe { self.run(opcode::Nop::new().build()) }
    }

    pub fn read(&mut self, file: &File) -> io::Result<()> {
        let mut buffer = [0; 64];
        let fd = types::Fd(file.as_raw_fd());
        let read = opcode::Read::new(fd, buffer.as_mut_ptr(), buffer.len() as u32);
        // SAFETY: the buffer and the file outlive the operation, which ends before `run` returns.
        unsafe { self.run(read.build()) }
    }

    pub fn make_directory(&mut self, path: &CStr) -> io::Result<()> {
        let make = opcode::MkDirAt::new(types::Fd(nix::libc::AT_FDCWD), path.as_ptr()).mode(0o755);
        // SAFETY: the path outlives the operation, which ends before `run` returns.
        unsafe { self.run(make.build()) }
    }

    /// Runs an operation on a worker and waits for its completion.
    ///
    /// # Safety
    ///
    /// The caller must keep everything that the operation refers to alive until this returns.
    unsafe fn run(&mut self, operation: squeue::Entry) -> io::Result<()> {
        let operation = operation.flags(squeue::Flags::ASYNC);
        // SAFETY: the caller keeps the operation's objects alive until this returns, after the
        // completion.
        unsafe { self.0.submission().push(&operation) }.map_err(io::Error::other)?;
        self.0.submit_and_wait(1)?;
        let result = self.0.completion().next().map_or(0, |done| done.result());
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
    }
}
// ANCHOR_END: workers

/// One step of operations on a file and on timeouts.
pub fn work(directory: &Path, step: u64) -> io::Result<()> {
    let mut ring = IoUring::new(8)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(directory.join("ring"))?;
    let fd = types::Fd(file.as_raw_fd());
    let mut buffer = vec![step as u8; 4096];
    let time = types::Timespec::new().nsec(1000);
    let (at, length) = (buffer.as_mut_ptr(), (step as u32 * 37) % 4096);
    let entries = [
        opcode::Nop::new().build(),
        opcode::Write::new(fd, at, length).offset(step % 5 * 1000).build(),
        opcode::Fsync::new(fd).build(),
        opcode::Read::new(fd, at, length).offset(step % 3 * 500).build(),
        opcode::Timeout::new(&time).build(),
        opcode::AsyncCancel::new(step).build(),
    ];
    for entry in &entries[..1 + step as usize % entries.len()] {
        // SAFETY: the buffer and the time outlive the ring, which closes after all completions.
        unsafe { ring.submission().push(entry) }.expect("room for each");
        ring.submit_and_wait(1)?;
        ring.completion().for_each(drop);
    }
    Ok(())
}
