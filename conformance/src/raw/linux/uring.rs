//! A ring of io_uring with a kernel thread that polls for submissions.
//!
//! That thread runs one section that is marked for remote collection per turn, on behalf of the
//! process that made the ring. The only operation submitted here is the one that does nothing:
//! it is all zeroes, as is fresh memory of a ring, so submitting it is advancing the tail.

use crate::errno::{Errno, Result};
use crate::raw::{Map, wait_for};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

/// `struct io_sqring_offsets` and `struct io_cqring_offsets`, as far as they are alike.
#[repr(C)]
#[derive(Default)]
struct Offsets {
    head: u32,
    tail: u32,
    rest: [u32; 8],
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: Offsets,
    cq: Offsets,
}

const _: () = assert!(size_of::<Params>() == 120);

const IORING_SETUP_SQPOLL: u32 = 1 << 1;
const IORING_ENTER_SQ_WAKEUP: u32 = 1 << 1;

/// A ring of one entry; its thread ends with it.
#[derive(Debug)]
pub struct Ring {
    fd: OwnedFd,
    /// The page that holds the heads and tails of both queues.
    map: Map,
    sq_tail: usize,
    cq_head: usize,
    cq_tail: usize,
}

impl Ring {
    /// Makes a ring. Its thread sleeps when there has been nothing to do for a millisecond.
    pub fn new() -> Result<Ring> {
        let mut params =
            Params { flags: IORING_SETUP_SQPOLL, sq_thread_idle: 1, ..Params::default() };
        let address = std::ptr::from_mut(&mut params);
        // SAFETY: the structure has the size that the kernel reads and writes, and outlives
        // the call.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, address) };
        let fd = i32::try_from(Errno::check(fd)?).expect("a descriptor");
        // SAFETY: the kernel has just made this descriptor for this process.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let map = Map::new(&fd, crate::raw::page_size(), 0, prot, libc::MAP_SHARED)?;
        let place = |offset: u32| offset as usize;
        Ok(Ring {
            fd,
            map,
            sq_tail: place(params.sq.tail),
            cq_head: place(params.cq.head),
            cq_tail: place(params.cq.tail),
        })
    }

    /// Has the thread do nothing once, and waits until it has.
    ///
    /// # Panics
    ///
    /// If that takes it very long.
    pub fn work(&self) {
        let done = self.map.load32(self.cq_tail);
        let submitted = self.map.load32(self.sq_tail);
        self.map.store32(self.sq_tail, submitted.wrapping_add(1));
        let fd = self.fd.as_raw_fd();
        let nothing = std::ptr::null::<libc::sigset_t>();
        let wake = IORING_ENTER_SQ_WAKEUP;
        // SAFETY: without a signal mask no memory is passed.
        let returned =
            unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, 0, 0, wake, nothing, 0) };
        Errno::check(returned).expect("the thread is woken");
        let worked = wait_for(Duration::from_secs(5), || self.map.load32(self.cq_tail) != done);
        assert!(worked, "the ring's thread does not work");
        self.map.store32(self.cq_head, self.map.load32(self.cq_tail));
    }
}
