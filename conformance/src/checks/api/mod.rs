//! Checks of the safe crate `kcov`: whether its documented promises hold on a running kernel. No
//! other checks use the crate. Checks for one system only are in that system's directory.

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
use crate::raw::{Gate, Map, Width, at_times, call, word_bytes};
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

/// Opens the device with a buffer of at least this many words.
pub(crate) fn open(cx: &Context, words: u64) -> Device {
    let size = BufferSize::words(words);
    Device::builder().path(cx.device()).size(size).open().expect("the device opens")
}

/// Whether this thread can be traced, that is, is not traced already.
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

/// Maps the buffer a second time, to access it as another process could.
pub(crate) fn intruder(device: &Device) -> Map {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let bytes = device.words() * word_bytes();
    let map = Map::new(device, bytes, 0, prot, libc::MAP_SHARED).expect("a second mapping");
    map.with_width(&Width::new(word_bytes()))
}

/// The address range of the buffer.
pub(crate) fn addresses(device: &mut Device) -> Range<usize> {
    let bytes = device.words() * word_bytes();
    let buffer = lend(device);
    let records = match buffer.trace().words() {
        Words::U64(records) => records.as_ptr().addr(),
        Words::U32(records) => records.as_ptr().addr(),
    };
    // The count word precedes the records.
    let start = records - word_bytes();
    start..start + bytes
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

/// Passes `look` a device and a second mapping of its buffer, while another thread is traced into
/// it. That thread has leaked its session.
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
            // Whatever this thread executes from here on would be recorded over these records.
            *place.lock().expect("the place") = Some((device, map));
            gate.open();
            done.wait();
        });
        gate.wait();
        let (device, map) = place.lock().expect("the place").take().expect("both");
        look(device, map);
    });
}
