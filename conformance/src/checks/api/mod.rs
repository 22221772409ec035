//! Checks of the safe crate `kcov`: what its documentation promises, on a running kernel. Only here
//! does the suite use it. What only one system has is in its directory; the module stands in the
//! system's.

mod adopt;
mod child_buffer;
mod device;
mod faults;
mod hostile;
mod modes;
mod owned;
pub(crate) mod recover;
mod session;
mod trace;

use crate::check::{Check, Context};
use crate::raw::{Gate, Map, at_times, call};
use kcov::mode::TracePc;
use kcov::{BufferSize, ChildBuffer, Completeness, Device, Error, Session, Words};
use std::ops::Range;
use std::sync::Mutex;

/// The checks, by topic.
pub const CHECKS: &[&[Check]] = &[
    device::CHECKS,
    session::CHECKS,
    owned::CHECKS,
    trace::CHECKS,
    hostile::CHECKS,
    child_buffer::CHECKS,
    adopt::CHECKS,
    recover::CHECKS,
    faults::CHECKS,
    modes::CHECKS,
];

/// An open device with a buffer of at least that many words.
pub(crate) fn open(cx: &Context, words: u64) -> Device {
    let size = BufferSize::words(words);
    Device::builder().path(cx.device()).size(size).open().expect("the device opens")
}

/// Whether this thread can be traced, so is not traced already.
pub(crate) fn is_free(cx: &Context) -> bool {
    match open(cx, 1).enable(TracePc) {
        Ok(_) => true,
        Err(error) if error.kind() == kcov::ErrorKind::AlreadyEnabled => false,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn enable(device: &mut Device) -> Session<TracePc, &mut Device> {
    device.enable(TracePc).expect("enabled")
}

pub(crate) fn lend(device: &mut Device) -> ChildBuffer<TracePc, &mut Device> {
    device.child_buffer(TracePc).expect("nothing is traced into it")
}

/// A second mapping of the buffer, through which a check does what another process could do.
pub(crate) fn intruder(device: &Device) -> Map {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let map = Map::new(device, device.words() * 8, 0, prot, libc::MAP_SHARED);
    map.expect("a second mapping")
}

/// The addresses of the buffer.
pub(crate) fn addresses(device: &mut Device) -> Range<usize> {
    let bytes = device.words() * 8;
    let buffer = lend(device);
    let Words::U64(records) = buffer.trace().words() else { panic!("64-bit words") };
    // The count word lies before the records.
    let start = records.as_ptr().addr() - 8;
    start..start + bytes
}

/// That sessions of a device record. Interrupts may leave more records than a small buffer holds, but
/// not each time.
#[track_caller]
pub(crate) fn records(device: &mut Device) {
    let recorded = at_times(|| {
        let mut session = enable(device);
        // Pages that were mapped anew are faulted in, which is recorded too.
        call();
        session.reset();
        call();
        let trace = session.disable().expect("disabled");
        trace.completeness() == Completeness::Complete && !trace.is_empty()
    });
    assert!(recorded, "a session of a call records");
}

pub(crate) fn kind<T>(result: Result<T, Error>) -> kcov::ErrorKind {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.kind(),
    }
}

/// Looks at a device, and a second mapping of its buffer, while another thread, which has leaked its
/// session, is traced into it.
pub(crate) fn with_device_of_a_living_thread(cx: &Context, look: impl FnOnce(Device, Map)) {
    let (gate, done) = (Gate::default(), Gate::default());
    let place = Mutex::new(None);
    std::thread::scope(|scope| {
        let _end = done.open_at_end();
        scope.spawn(|| {
            let mut device = open(cx, 4096);
            let map = intruder(&device);
            std::mem::forget(enable(&mut device));
            call();
            // From here on what this thread executes would be recorded over these.
            *place.lock().expect("the place") = Some((device, map));
            gate.open();
            done.wait();
        });
        gate.wait();
        let (device, map) = place.lock().expect("the place").take().expect("both");
        look(device, map);
    });
}
