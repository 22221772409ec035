//! Checks of the safe crate `kcov`: whether its documented promises hold on a running kernel. No
//! other checks use the crate. Checks for one system only are in that system's directory.

mod child_buffer;
mod device;
mod faults;
mod hostile;
pub(crate) mod inherited;
pub(crate) mod lost;
mod owned;
mod protection;
mod session;

pub(crate) use super::prelude::*;
pub(crate) use crate::raw::Device as Raw;
pub(crate) use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
#[allow(unused_imports, reason = "each system's checks use some of them")]
pub(crate) use kcov::{
    AnyRecord, Arch, BufferSize, Builder, ChildBuffer, Completeness, Device, Error, ErrorKind,
    Modes, Operation, Owner, Pc, Recorded, Session, Trace,
};
pub(crate) use nix::sys::wait::{WaitStatus, waitpid};
#[allow(unused_imports, reason = "each system's checks use some of them")]
pub(crate) use nix::unistd::{ForkResult, Pid, fork, getpid};
pub(crate) use std::ops::Range;
pub(crate) use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

use crate::check::on_crate_by;
use std::ffi::c_void;

pub const CHECKS: &[&[Check]] = &[
    device::CHECKS,
    session::CHECKS,
    owned::CHECKS,
    hostile::CHECKS,
    child_buffer::CHECKS,
    protection::CHECKS,
    lost::CHECKS,
    inherited::CHECKS,
    faults::CHECKS,
];

pub(crate) fn is_open(number: RawFd) -> bool {
    // SAFETY: the request only reads a flag of the file descriptor, or fails.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

/// How many file descriptors the process has open.
pub(crate) fn descriptors() -> usize {
    (0..1024).filter(|number| is_open(*number)).count()
}

/// Opens the device with a buffer of at least this many words.
pub(crate) fn open(cx: &Context, words: u64) -> Device {
    let size = BufferSize::words(words);
    Device::builder().path(cx.device()).size(size).open().expect("the device opens")
}

/// Declares a check on a device with a buffer of at least this many words.
pub(crate) const fn on_crate(id: &'static str, words: u64, body: fn(&Context, Device)) -> Check {
    on_crate_by(open, id, words, body)
}

/// Whether this thread can be traced, that is, is not traced already.
pub(crate) fn is_free(cx: &Context) -> bool {
    match open(cx, 1).enable(TracePc) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyEnabled => false,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn enable(device: &mut Device) -> Session<TracePc, &mut Device> {
    device.enable(TracePc).expect("enabled")
}

pub(crate) fn lend(device: &mut Device) -> ChildBuffer<TracePc, &mut Device> {
    device.child_buffer(TracePc).expect("nothing is traced into it")
}

pub(crate) fn of_a_call<M: Mode, D: Owner>(session: Session<M, D>) -> Recorded<M, D> {
    call();
    session.disable().expect("disabled")
}

/// Maps the buffer a second time, to access it as another process could.
pub(crate) fn intruder(device: &Device) -> Map {
    let bytes = device.words() * word_bytes();
    let map = Map::new(&device.as_fd(), bytes, 0, READ_WRITE, MAP_SHARED);
    map.expect("a second mapping").with_width(&Width::new(word_bytes()))
}

/// What the last child left in a buffer that can be read.
#[track_caller]
pub(crate) fn left<M: Mode, D: Owner>(buffer: &ChildBuffer<M, D>) -> Trace<'_, M> {
    buffer.trace().expect("the buffer can be read")
}

pub(crate) fn descriptor(device: &Device) -> RawFd {
    device.as_fd().as_raw_fd()
}

/// A range of addresses at which nothing is mapped.
pub(crate) fn free_addresses(bytes: usize) -> Range<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let hole = Map::new(&-1, bytes, 0, libc::PROT_NONE, flags).expect("address space");
    let start = hole.address().addr();
    hole.unmap().expect("unmapped");
    start..start + bytes
}

/// Opens the device with a buffer of this many words, and returns its addresses too.
pub(crate) fn open_at(cx: &Context, words: u64) -> (Device, Range<usize>) {
    let place = free_addresses(usize::try_from(words).expect("a size") * word_bytes());
    let builder = Device::builder().path(cx.device()).size(BufferSize::words(words));
    (builder.address(place.start).open().expect("the device opens there"), place)
}

/// A builder of a device with room for the records of a call, even with all of the kernel's checkers
/// enabled.
pub(crate) fn builder(cx: &Context) -> Builder {
    Device::builder().path(cx.device()).size(BufferSize::words(1 << 16))
}

/// Private memory of somebody else. It stays mapped until the process ends.
pub(crate) struct Others(&'static [AtomicU64]);

impl Others {
    /// Maps the memory at these addresses, as a target might, and numbers its words.
    pub(crate) fn at(place: Range<usize>) -> Others {
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_ANONYMOUS;
        let start = place.start as *mut c_void;
        // SAFETY: callers have given up what is there, or make sure that it is not used again.
        let mapped = unsafe { libc::mmap(start, place.len(), READ_WRITE, flags, -1, 0) };
        assert_eq!(mapped, start);
        // SAFETY: the range was just mapped, nothing unmaps it unless a check fails, and all
        // accesses are atomic.
        let words = unsafe { std::slice::from_raw_parts(mapped.cast(), place.len() / 8) };
        let others = Others(words);
        words.iter().zip(1..).for_each(|(word, number)| word.store(number, Ordering::Relaxed));
        others
    }

    /// Asserts that nothing has changed or unmapped the memory.
    #[track_caller]
    pub(crate) fn are_untouched(&self) {
        let ends = [self.0.as_ptr_range().start.addr(), self.0.as_ptr_range().end.addr() - 1];
        assert_eq!(ends.map(accessible), [(true, true); 2], "the memory is still there");
        let words = self.0.iter().map(|word| word.load(Ordering::Relaxed));
        assert!(words.zip(1..).all(|(word, number)| word == number), "it was changed");
    }
}

/// Gives the number of a device's descriptor to another open file, as a target might.
pub(crate) fn take_number(number: RawFd, file: &impl AsRawFd) {
    // SAFETY: callers do not let the device use the number again, except as a check says.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
}

/// The deadline for what a correct kernel does at once.
pub(crate) fn deadline() -> Instant {
    Instant::now() + LONG
}

/// Asserts that sessions of a device record calls. Interrupts may add more records than a small
/// buffer holds, but not every time.
#[track_caller]
pub(crate) fn records(device: &mut Device) {
    let recorded = at_times(|| {
        let mut session = enable(device);
        // Faults in newly mapped pages, since those faults are recorded too.
        call();
        session.reset();
        call();
        let recorded = session.disable().expect("disabled");
        let trace = recorded.trace();
        trace.completeness() == Completeness::Complete && !trace.is_empty()
    });
    assert!(recorded, "a session of a call records");
}

/// Asserts that this operation has failed with an error of this kind, and returns the error.
#[track_caller]
pub(crate) fn fails<T>(result: Result<T, Error>, operation: Operation, kind: ErrorKind) -> Error {
    let error = result.map(drop).expect_err("it succeeded");
    assert_eq!((error.operation(), error.kind()), (operation, kind), "{error}");
    error
}

pub(crate) fn addresses(trace: &Trace<'_, TracePc>) -> Vec<u64> {
    trace.iter().map(kcov::Pc::address).collect()
}

/// Makes a traced call in a child, and returns the addresses that the child sees.
pub(crate) fn seen_by_child<D: Owner>(buffer: &mut ChildBuffer<TracePc, D>) -> Vec<u64> {
    child(|| addresses(&of_a_call(buffer.enable().expect("enabled in the child")).trace()))
}

pub(crate) fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.map(drop).expect_err("it succeeded").kind()
}

/// Passes `look` a device and a second mapping of its buffer, while another thread is traced into
/// it. That thread has leaked its session.
pub(crate) fn with_device_of_a_living_thread(cx: &Context, look: impl FnOnce(Device, Map)) {
    let place = Mutex::new(None);
    let leak = || {
        let mut device = open(cx, 4096);
        let map = intruder(&device);
        std::mem::forget(enable(&mut device));
        call();
        // Whatever this thread executes from here on would be recorded over these records.
        *place.lock().expect("the place") = Some((device, map));
        Ok(())
    };
    let meanwhile = || {
        let (device, map) = place.lock().expect("the place").take().expect("both");
        look(device, map);
    };
    beside_other(leak, meanwhile, || ());
}
