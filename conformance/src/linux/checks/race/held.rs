//! Operations on a device during another thread's request, while the kernel is kept from reading
//! the request's argument.

use super::*;
use crate::linux::checks::remote::{self, pair, usb};
use crate::linux::checks::while_held;

/// Makes another thread request remote collection, and runs `meanwhile` when the kernel is about to
/// read the argument. Returns the results of the request and of `then`, which the thread runs next.
fn asked<T: Send>(
    device: &Device,
    meanwhile: impl FnOnce(),
    then: impl FnOnce() -> T + Send,
) -> (Result<()>, T) {
    let argument = Absent::pages(1).expect("a page");
    while_held(
        || (device.remote_enable_at(argument.address(0)), then()),
        || {
            argument.wait();
            meanwhile();
            argument.provide(0, &request());
        },
    )
}

/// The words of the argument: mode and area size, number of handles, common handle, and one handle.
fn request() -> [u64; 4] {
    [pair(KCOV_TRACE_PC, 4096), pair(1, 0), 0, usb(1)]
}

fn is_free(cx: &Context) -> bool {
    remote::is_free(cx, &Remote::of(usb(1)))
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("race.held.enabled-meanwhile-is-refused", mapped, |cx, device, map| {
        let (result, ()) = asked(&device, || device.enable(KCOV_TRACE_PC).expect("enabled"), || ());
        cx.refused(result);
        assert!(is_traced(&map), "the thread that was first");
        assert!(is_free(cx));
        device.disable().expect("disabled");
    }),
    on_buffer("race.held.disabled-meanwhile", collecting_pc, |cx, device, map| {
        let meanwhile = || device.disable().expect("disabled");
        let (result, free) = asked(&device, meanwhile, || is_free(cx));
        assert_eq!(result, Ok(()), "it is free by then");
        assert!(!free, "the handle is registered");
        assert!(!is_traced(&map), "the thread that was first");
    }),
    on_device("race.held.sized-meanwhile", open, |cx, device| {
        let meanwhile = || device.init_trace(COVER_SIZE).expect("sized");
        let (result, free) = asked(&device, meanwhile, || is_free(cx));
        assert_eq!(result, Ok(()), "it has a buffer by then");
        assert!(!free, "the handle is registered");
    }),
    check("race.held.closed-meanwhile", |cx| {
        // No other check uses this size.
        const PAGES: u64 = 83;
        let buffers = || areas_of_size("kcov_ioctl", PAGES * page_size() as u64);
        let device = sized(cx, PAGES * page_words());
        // A proposal has several.
        let ours = buffers();
        assert!(ours > 0, "a buffer of this size");
        let meanwhile = || nix::unistd::close(device.as_raw_fd()).expect("closed");
        let (result, (free, kept)) = asked(&device, meanwhile, || (is_free(cx), buffers()));
        // The file descriptor is already closed.
        std::mem::forget(device);
        assert_eq!(result, Ok(()), "the request has the open file");
        assert!(!free && kept == ours, "the device lives as long as it is enabled");
        assert!(is_free(cx), "the thread has ended");
        assert!(wait_for(LONG, || buffers() == 0), "the buffer is given back");
    }),
    check("race.held.handle-taken-meanwhile-is-refused", |cx| {
        let (device, first) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        let meanwhile = || first.remote_enable(&Remote::of(usb(1))).expect("enabled");
        let (result, again) =
            asked(&device, meanwhile, || device.remote_enable(&Remote::of(usb(2))));
        cx.refused(result);
        assert_eq!(again, Ok(()), "the refusal has left nothing behind");
        assert!(!is_free(cx), "it is registered for the first one");
        first.disable().expect("disabled");
        assert!(is_free(cx));
    }),
    on_device("race.held.two-at-once", usual, |cx, device| {
        let mut second = None;
        let nested = || second = Some(asked(&device, || (), || ()).0);
        // The inner request finishes while the outer one waits, and its thread ends
        // before that one.
        let (first, free) = asked(&device, nested, || is_free(cx));
        assert_eq!((first, second), (Ok(()), Some(Ok(()))), "one after the other");
        assert!(!free, "the handle is registered");
        assert!(is_free(cx), "no thread has it any more");
    }),
];
