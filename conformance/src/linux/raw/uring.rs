//! Rings of io_uring. Their kernel threads work on behalf of the process that created them.
//!
//! A thread that polls for submissions runs one remote section per turn. It gets no-op operations:
//! a no-op entry is all zeroes, like fresh ring memory, so advancing the tail submits one. A
//! worker, which handles operations that may block, runs one remote section per operation.

use super::*;

/// The common part of `struct io_sqring_offsets` and `struct io_cqring_offsets`.
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
const IORING_SETUP_ATTACH_WQ: u32 = 1 << 5;
const IORING_SETUP_SINGLE_ISSUER: u32 = 1 << 12;
const IORING_SETUP_DEFER_TASKRUN: u32 = 1 << 13;
const IORING_ENTER_GETEVENTS: u32 = 1 << 0;
const IORING_ENTER_SQ_WAKEUP: u32 = 1 << 1;
const IORING_OFF_SQES: i64 = 0x1000_0000;
const IORING_OP_TEE: u8 = 33;
const IORING_OP_READV: u8 = 1;
/// Writes one buffer. One worker at a time writes to a regular file.
const IORING_OP_WRITE: u8 = 23;
/// Forces an operation onto a worker.
const IOSQE_ASYNC: u8 = 1 << 4;

/// Offsets in `struct io_uring_sqe`: the operation and its flags, the file descriptor (the pipe
/// written to, or the file read), the address, the length, and the pipe read from.
const OPCODE: usize = 0;
const FD: usize = 4;
const ADDR: usize = 16;
const LEN: usize = 24;
const SPLICE_FD_IN: usize = 44;

/// A ring with one entry. Its thread ends with it.
pub struct Ring {
    fd: OwnedFd,
    /// The page with the heads and tails of both queues.
    map: Map,
    sq_tail: usize,
    cq_head: usize,
    cq_tail: usize,
}

impl Ring {
    /// Creates a ring with its own thread, which sleeps after one idle millisecond.
    pub fn new() -> Result<Ring> {
        Ring::with(Params { flags: IORING_SETUP_SQPOLL, sq_thread_idle: 1, ..Params::default() })
    }

    /// Creates a ring that uses this ring's thread.
    pub fn beside(&self) -> Result<Ring> {
        let (flags, wq_fd) = (IORING_SETUP_SQPOLL | IORING_SETUP_ATTACH_WQ, number(&self.fd));
        Ring::with(Params { flags, sq_thread_idle: 1, wq_fd, ..Params::default() })
    }

    /// Creates a ring without threads. The kernel starts a worker when it needs one.
    ///
    /// The owner collects results when it asks for them. Otherwise a worker that finishes would
    /// interrupt the owner's current system call.
    pub fn without_thread() -> Result<Ring> {
        let flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
        Ring::with(Params { flags, ..Params::default() })
    }

    fn with(mut params: Params) -> Result<Ring> {
        let address = std::ptr::from_mut(&mut params);
        // SAFETY: the structure has the size that the kernel reads and writes, and outlives the
        // call.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, address) };
        let fd = i32::try_from(Errno::check(fd)?).expect("a descriptor");
        // SAFETY: the kernel has just installed this file descriptor, so nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let map = Map::new(&fd, crate::raw::page_size(), 0, READ_WRITE, libc::MAP_SHARED)?;
        let place = |offset: u32| offset as usize;
        Ok(Ring {
            fd,
            map,
            sq_tail: place(params.sq.tail),
            cq_head: place(params.cq.head),
            cq_tail: place(params.cq.tail),
        })
    }

    /// Submits a no-op to the thread and waits until it is done.
    pub fn work(&self) {
        self.submit(0, IORING_ENTER_SQ_WAKEUP);
        self.complete();
    }

    /// Makes a worker write a byte to a file, and waits until it has.
    pub fn write_byte(&self, to: &impl AsFd) {
        static BYTE: u8 = b'x';
        let entry = self.entry([IORING_OP_WRITE, IOSQE_ASYNC, 0, 0], to, 1);
        entry.store(ADDR / 8, (&raw const BYTE).expose_provenance() as u64);
        self.submit(1, 0);
        self.complete();
    }

    /// Makes a worker read from a file into all of `memory`, this many times over. Runs
    /// `meanwhile`, which may ask whether the reading is done. Returns when it is.
    pub fn fill<T>(
        &self,
        from: &impl AsFd,
        memory: &Map,
        times: usize,
        meanwhile: impl FnOnce(&dyn Fn() -> bool) -> T,
    ) -> T {
        let place = libc::iovec { iov_base: memory.address(), iov_len: memory.bytes() };
        let places = vec![place; times];
        let entry = self.entry([IORING_OP_READV, IOSQE_ASYNC, 0, 0], from, times);
        entry.store(ADDR / 8, places.as_ptr().expose_provenance() as u64);
        self.submit(1, 0);
        let value = meanwhile(&|| self.done());
        self.complete();
        value
    }

    /// Maps the only entry, with this operation, file and length.
    fn entry(&self, operation: [u8; 4], file: &impl AsFd, length: usize) -> Map {
        let bytes = crate::raw::page_size();
        let entries = Map::new(&self.fd, bytes, IORING_OFF_SQES, READ_WRITE, libc::MAP_SHARED);
        let entry = entries.expect("the entries are mapped");
        entry.store32(OPCODE, u32::from_ne_bytes(operation));
        entry.store32(FD, number(file));
        entry.store32(LEN, u32::try_from(length).expect("a length"));
        entry
    }

    fn submit(&self, number: u32, flags: u32) {
        let submitted = self.map.load32(self.sq_tail);
        self.map.store32(self.sq_tail, submitted.wrapping_add(1));
        self.enter(number, flags);
    }

    fn done(&self) -> bool {
        self.enter(0, IORING_ENTER_GETEVENTS);
        self.map.load32(self.cq_tail) != self.map.load32(self.cq_head)
    }

    fn enter(&self, number: u32, flags: u32) {
        let fd = self.fd.as_raw_fd();
        let nothing = std::ptr::null::<libc::sigset_t>();
        // SAFETY: without a signal mask the call takes no memory.
        let returned =
            unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, number, 0, flags, nothing, 0) };
        Errno::check(returned).expect("the ring is entered");
    }

    fn complete(&self) {
        assert!(wait_for(LONG, || self.done()), "the ring's work is not done");
        self.map.store32(self.cq_head, self.map.load32(self.cq_tail));
    }
}

/// A ring whose worker copies a byte from one pipe to another. Each copy is a section, in which the
/// worker blocks until [`give`](Self::give).
pub struct Copies {
    ring: Ring,
    /// The ends to read from and to write to.
    from: (OwnedFd, OwnedFd),
    to: (OwnedFd, OwnedFd),
}

impl Copies {
    pub fn new() -> Result<Copies> {
        Ok(Copies { ring: Ring::without_thread()?, from: pipe()?, to: pipe()? })
    }

    /// Returns when a worker is in a section, where it blocks.
    pub fn held() -> Result<Copies> {
        let copies = Copies::new()?;
        copies.begin();
        let blocked = || sleeping_thread("iou-wrk-");
        assert!(wait_for(LONG, blocked), "a worker waits for the byte");
        Ok(copies)
    }

    /// Submits a copy, which the kernel always passes to a worker.
    pub fn begin(&self) {
        let entry = self.ring.entry([IORING_OP_TEE, 0, 0, 0], &self.to.1, 1);
        entry.store32(SPLICE_FD_IN, number(&self.from.0));
        self.ring.submit(1, 0);
    }

    /// Provides the byte, which stays in the pipe however often it is copied.
    pub fn give(&self) {
        assert_eq!(write(&self.from.1, b"x"), Ok(1));
    }

    pub fn complete(&self) {
        self.ring.complete();
        assert_eq!(read(&self.to.0, &mut [0]), Ok(1));
    }
}

fn number(fd: &impl AsFd) -> u32 {
    u32::try_from(fd.as_fd().as_raw_fd()).expect("a descriptor")
}
