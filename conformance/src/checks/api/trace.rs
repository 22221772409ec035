//! Reading what the kernel wrote, and what it did not.

use super::{enable, open};
use crate::check::{Context, checks};
use crate::raw::{Map, call, page_words};
use kcov::mode::{TraceCmp, TracePc};
use kcov::{Device, Trace};
use std::sync::atomic::{AtomicBool, Ordering};

checks! {
    full_buffer_is_truncated,
    full_buffer_of_comparisons_is_truncated needs(Comparisons),
    count_is_read_once,
    hostile_count_is_clamped,
    hostile_count_of_comparisons_is_clamped needs(Comparisons),
    scribbled_buffer_is_read_safely,
}

/// A second mapping, through which a check does what another process could do.
fn intruder(device: &Device) -> Map {
    let bytes = usize::try_from(page_words() * 8).expect("a page");
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    Map::new(&AsRaw(device), bytes, 0, prot, libc::MAP_SHARED).expect("a second mapping")
}

struct AsRaw<'d>(&'d Device);

impl std::os::fd::AsRawFd for AsRaw<'_> {
    fn as_raw_fd(&self) -> i32 {
        use std::os::fd::AsFd as _;
        self.0.as_fd().as_raw_fd()
    }
}

fn full_buffer_is_truncated(cx: &Context) {
    let mut device = open(cx, 1);
    let mut session = enable(&mut device);
    // The first time, the pages that it goes through are faulted in, which is recorded too.
    call();
    session.reset();
    call();
    assert!(!session.trace().is_truncated());
    for _ in 0..1000 {
        call();
    }
    let trace = session.trace();
    assert!(trace.is_truncated());
    assert_eq!((trace.len(), trace.iter().count()), (trace.capacity(), trace.capacity()));
    session.reset();
    call();
    assert!(!session.trace().is_truncated());
}

fn full_buffer_of_comparisons_is_truncated(cx: &Context) {
    let mut device = open(cx, 1);
    let session = device.enable(TraceCmp).expect("enabled");
    for _ in 0..1000 {
        call();
    }
    let trace = session.disable().expect("disabled");
    assert!(trace.is_truncated());
    assert_eq!((trace.len(), trace.iter().count()), (trace.capacity(), trace.capacity()));
}

fn count_is_read_once(cx: &Context) {
    let mut device = open(cx, 4096);
    let session = enable(&mut device);
    call();
    let trace = session.trace();
    let records: Vec<_> = trace.iter().collect();
    call();
    assert!(session.trace().len() > records.len());
    assert_eq!(trace.iter().collect::<Vec<_>>(), records);
}

fn hostile_count_is_clamped(cx: &Context) {
    let mut device = open(cx, 1);
    let intruder = intruder(&device);
    for count in [device.words() as u64, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX] {
        let session = enable(&mut device);
        intruder.store(0, count);
        assert_is_full(&session.trace());
        // The request itself is recorded, after the hostile count or over it.
        session.disable().expect("disabled").iter().for_each(drop);
    }
}

fn assert_is_full(trace: &Trace<'_, TracePc>) {
    assert!(trace.is_truncated());
    assert_eq!(trace.iter().count(), trace.capacity());
}

fn hostile_count_of_comparisons_is_clamped(cx: &Context) {
    // Stored after the session: some kernels trust the count word while they record comparisons.
    let mut device = open(cx, 1);
    let intruder = intruder(&device);
    drop(device.enable(TraceCmp).expect("enabled"));
    let server = device.fork_server(TraceCmp);
    for count in [128, 1 << 59, (1 << 62) - 1, u64::MAX] {
        intruder.store(0, count);
        let trace = server.trace();
        assert!(trace.is_truncated());
        assert_eq!(trace.iter().count(), 127);
    }
}

fn scribbled_buffer_is_read_safely(cx: &Context) {
    let mut device = open(cx, 1);
    let intruder = intruder(&device);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
            while !done.load(Ordering::Relaxed) {
                for index in 0..intruder.words() {
                    noise = noise.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                    intruder.store(index, noise);
                }
            }
        });
        let session = enable(&mut device);
        for _ in 0..1000 {
            call();
            let trace = session.trace();
            assert_eq!(trace.iter().count(), trace.len());
            assert!(trace.len() <= trace.capacity());
        }
        done.store(true, Ordering::Relaxed);
    });
}
