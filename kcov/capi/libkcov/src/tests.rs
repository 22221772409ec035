//! Sessions over the fake kernel, threads, and panics. tests/use.c uses the rest.

use crate::failure::{Handle as _, guard, kcov_failure, kcov_last_failure, kcov_last_message};
use crate::kernel::{KCOV_RECORD_CMP, KCOV_RECORD_PC};
use crate::novelty::{kcov_novelty, kcov_novelty_free, kcov_novelty_has_new, kcov_novelty_new};
use crate::session::*;
use kcov::fake::Kernel;
use kcov::{BufferSize, Comparison, Operation};
use std::ffi::CStr;
use std::ptr;
use std::slice;
use std::thread;

fn open(kernel: &Kernel) -> *mut kcov_session {
    let device = kernel.builder().size(BufferSize::words(512)).open().expect("a device");
    Box::into_raw(kcov_session::new(Tracer::new(device)))
}

fn message() -> String {
    // SAFETY: the message is valid until this thread's next failure.
    unsafe { CStr::from_ptr(kcov_last_message()) }.to_str().expect("UTF-8").to_string()
}

#[track_caller]
fn assert_failed(result: i32, kind: kcov_failure, words: &str) {
    assert_eq!((result, kcov_last_failure()), (-1, kind), "{}", message());
    assert!(message().contains(words), "{}", message());
}

fn enable(session: *mut kcov_session, mode: u32) -> i32 {
    // SAFETY: the tests free a session last.
    unsafe { kcov_session_enable(session, mode) }
}

fn disable(session: *mut kcov_session) -> i32 {
    // SAFETY: the tests free a session last.
    unsafe { kcov_session_disable(session) }
}

fn reset(session: *mut kcov_session) -> i32 {
    // SAFETY: the tests free a session last.
    unsafe { kcov_session_reset(session) }
}

/// Frees the session, or is refused.
fn free(session: *mut kcov_session) -> i32 {
    // SAFETY: the tests free a session last.
    unsafe { kcov_session_free(session) }
}

fn copied(session: *mut kcov_session) -> Vec<u64> {
    let mut words = vec![0; 600];
    // SAFETY: a session, and an array of that length.
    let count = unsafe { kcov_session_copy(session, words.as_mut_ptr(), words.len()) };
    words.truncate(usize::try_from(count).expect("no failure"));
    words
}

fn described(session: *mut kcov_session) -> kcov_records {
    let mut records =
        kcov_records { words: ptr::null(), records: 0, words_per_record: 0, completeness: 9 };
    // SAFETY: the tests free a session last.
    let result = unsafe { kcov_session_records(session, Some(&mut records)) };
    assert_eq!(result, 0, "{}", message());
    records
}

#[test]
fn a_session_records_on_both_systems() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let session = open(&kernel);
        for _ in 0..2 {
            assert_eq!(enable(session, KCOV_RECORD_PC), 0, "{}", message());
            kernel.call(|trace| trace.pc(5));
            assert_eq!((copied(session), reset(session)), (vec![5], 0));
            kernel.call(|trace| [7, 8].map(|pc| trace.pc(pc)));
            assert_eq!(disable(session), 0, "{}", message());
            let records = described(session);
            assert_eq!((records.records, records.words_per_record), (2, 1));
            assert_eq!(records.completeness, KCOV_RECORDS_COMPLETE);
            // SAFETY: two words, which no longer change.
            let words = unsafe { slice::from_raw_parts(records.words, 2) };
            assert_eq!((words, copied(session)), (&[7, 8][..], vec![7, 8]));
        }
        assert_eq!(enable(session, KCOV_RECORD_CMP), 0, "{}", message());
        let comparison = [3, 0xcafe, 7, 0x1000];
        kernel.call(|trace| {
            (0..200).for_each(|_| trace.comparison(Comparison::from_words(comparison)));
        });
        let records = described(session);
        assert_eq!((records.records, records.words_per_record), (127, 4));
        assert_eq!(records.completeness, KCOV_RECORDS_TRUNCATED);
        assert_eq!(copied(session)[..4], comparison);
        kernel.store_counts(9999);
        assert_eq!(described(session).completeness, KCOV_RECORDS_CORRUPT);
        assert_eq!(free(session), 0);
        assert!(!kernel.is_traced());
        assert_eq!(kernel.open_devices(), 0);
    }
}

#[test]
fn a_failed_request_leaves_the_device_open() {
    let kernel = Kernel::linux().without_comparisons();
    let session = open(&kernel);
    let enabled = enable(session, KCOV_RECORD_CMP);
    assert_failed(enabled, kcov_failure::ModeNotBuiltIn, "kcov_session_enable: cannot enable");
    assert_failed(reset(session), kcov_failure::NotEnabled, "enable it first");
    assert_eq!(enable(session, KCOV_RECORD_PC), 0, "{}", message());
    kernel.fail(Operation::Disable, 22);
    assert_failed(disable(session), kcov_failure::NotEnabled, "cannot disable");
    assert_eq!(free(session), 0);
}

/// A handle for another thread.
struct Sent<T>(*mut T);
// SAFETY: the library checks the thread.
unsafe impl<T> Send for Sent<T> {}

#[test]
fn an_enabled_session_belongs_to_its_thread_until_that_ends() {
    let kernel = Kernel::linux();
    let sent = Sent(open(&kernel));
    let session = sent.0;
    assert_eq!(enable(session, KCOV_RECORD_PC), 0);
    let other = thread::spawn(move || {
        let sent = sent;
        let session = sent.0;
        let wrong = kcov_failure::WrongThread;
        assert_failed(reset(session), wrong, "in the thread that enabled");
        assert_failed(enable(session, KCOV_RECORD_PC), wrong, "another thread");
        assert_failed(disable(session), wrong, "another thread");
        assert_failed(free(sent.0), wrong, "kcov_session_free: another");
        sent
    });
    let sent = other.join().expect("no panic");
    assert_eq!(disable(session), 0, "{}", message());
    // Now the other way: the traced thread ends.
    let other = thread::spawn(move || {
        let sent = sent;
        assert_eq!(enable(sent.0, KCOV_RECORD_PC), 0);
        sent
    });
    let sent = other.join().expect("no panic");
    assert_eq!(free(sent.0), 0, "{}", message());
    assert_eq!(kernel.open_devices(), 0);
}

fn map() -> *mut kcov_novelty {
    // SAFETY: no ranges.
    Box::into_raw(unsafe { kcov_novelty_new(ptr::null(), 0, 1) }.expect("a map"))
}

fn has_new(map: *mut kcov_novelty) -> i32 {
    // SAFETY: the tests free a map last. There are no signals.
    unsafe { kcov_novelty_has_new(map, ptr::null(), 0) }
}

fn free_map(map: *mut kcov_novelty) {
    // SAFETY: from `map`, and not used again.
    kcov_novelty_free(Some(unsafe { Box::from_raw(map) }));
}

#[test]
fn a_handle_in_use_is_refused() {
    let sent = Sent(map());
    // SAFETY: freed at the end.
    let used = unsafe { &*sent.0 }.mutex().lock();
    let other = thread::spawn(move || {
        let sent = sent;
        assert_failed(has_new(sent.0), kcov_failure::Busy, "another thread is using the handle");
        sent
    });
    let sent = other.join().expect("no panic");
    // Failures are the thread's own.
    assert_eq!((kcov_last_failure(), message()), (kcov_failure::None, String::new()));
    drop(used);
    assert_eq!(has_new(sent.0), 0);
    free_map(sent.0);
}

#[test]
fn a_panic_breaks_the_handle_and_nothing_else() {
    let (broken, whole) = (map(), map());
    let result = guard("kcov_test", -1, || {
        // SAFETY: freed at the end.
        let _used = unsafe { &*broken }.mutex().lock();
        panic!("for the test")
    });
    assert_failed(result, kcov_failure::Defect, "kcov_test: a defect");
    assert_failed(has_new(broken), kcov_failure::Defect, "free it");
    assert_eq!(has_new(whole), 0);
    [broken, whole].into_iter().for_each(free_map);
}
