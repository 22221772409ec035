//! With an io_uring. Each example takes one of the functions.
#![allow(dead_code)]

use io_uring::{IoUring, opcode, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

// ANCHOR: polled
/// Has a thread of the kernel do nothing: one that polls a new ring for submissions.
pub fn nothing_by_a_kernel_thread() -> io::Result<()> {
    let mut ring: IoUring = IoUring::builder().setup_sqpoll(1).build(1)?;
    let entry = opcode::Nop::new().build();
    // SAFETY: the operation does nothing, so it refers to nothing that must stay alive.
    unsafe { ring.submission().push(&entry) }.expect("room for one");
    ring.submit_and_wait(1).map(drop)
}
// ANCHOR_END: polled

/// One step of operations on a file and on time.
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
        // SAFETY: the buffer and the time live until the ring is closed, after all completions.
        unsafe { ring.submission().push(entry) }.expect("room for each");
        ring.submit_and_wait(1)?;
        ring.completion().for_each(drop);
    }
    Ok(())
}
