//! Enabling on NetBSD: the end of a thread.

use crate::check::{Context, checks};
use crate::checks::api::{enable, is_free, open};
use crate::raw::{LONG, thread, wait_for};
use kcov::ErrorKind;

checks! {
    "api.session.leaked-in-ended-thread": leaked_in_ended_thread,
    "api.session.thread-whose-device-was-dropped-elsewhere":
        thread_whose_device_was_dropped_elsewhere,
}

fn leaked_in_ended_thread(cx: &Context) {
    let mut device = open(cx, 1);
    thread(|| std::mem::forget(enable(&mut device)));
    let device = std::cell::RefCell::new(device);
    let enabled = wait_for(LONG, || {
        // The kernel may only free the ended thread's data when another thread starts or ends.
        thread(|| ());
        match device.borrow_mut().enable(kcov::mode::TracePc) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyEnabled => false,
            Err(error) => panic!("{error}"),
        }
    });
    assert!(enabled, "the device is free again");
}

fn thread_whose_device_was_dropped_elsewhere(cx: &Context) {
    thread(|| {
        let mut device = open(cx, 1);
        std::mem::forget(enable(&mut device));
        std::thread::scope(|scope| {
            scope.spawn(move || drop(device)).join().expect("the other thread");
        });
        assert!(!is_free(cx), "traced until it ends");
    });
    thread(|| assert!(is_free(cx), "another thread is free"));
}
