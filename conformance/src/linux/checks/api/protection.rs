//! Protection of the buffer from the traced program.

pub(super) mod key;

use super::proposed::proposals;
use crate::check::{Context, checks};
use crate::checks::api::{enable, kind, lend};
use crate::raw::{accessible, call, child, page_size, word_bytes};
use kcov::mode::TracePc;
use kcov::proposed::EdgeDevice;
use kcov::{BufferSize, Device, ErrorKind};
use std::fs;
use std::os::fd::{AsFd, AsRawFd};

checks! {
    "api.protection.guard-pages-cannot-be-accessed": guard_pages_cannot_be_accessed,
    "api.protection.descriptor-is-moved-up-and-closed-on-exec":
        descriptor_is_moved_up_and_closed_on_exec,
    "api.protection.descriptor-beyond-the-limit-is-refused": descriptor_beyond_the_limit_is_refused,
    "api.protection.write-protected-between-sessions": write_protected_between_sessions,
    "api.protection.write-protected-and-forked": write_protected_and_forked,
    "api.protection.write-protected-with-edges": write_protected_with_edges,
    "api.protection.write-protected-with-a-bitmap": write_protected_with_a_bitmap,
}

/// Room for the records of a call, even with all of the kernel's checkers enabled.
const WORDS: usize = 1 << 16;

pub(super) fn builder(cx: &Context) -> kcov::Builder {
    Device::builder().path(cx.device()).size(BufferSize::words(WORDS as u64))
}

/// The address ranges of the process's mappings whose lines end with this.
fn mappings(end: &str) -> Vec<(usize, usize)> {
    let maps = fs::read_to_string("/proc/self/maps").expect("the process's mappings");
    let number = |hex: &str| usize::from_str_radix(hex, 16).expect("an address");
    let range = |line: &str| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.map(|(start, end)| (number(start), number(end))).expect("the range of a mapping")
    };
    maps.lines().filter(|line| line.ends_with(end)).map(range).collect()
}

/// The address range of the process's only kcov buffer.
pub(super) fn buffer() -> (usize, usize) {
    let found = mappings("/kcov");
    assert_eq!(found.len(), 1, "one mapping of kcov");
    found[0]
}

fn guard_pages_cannot_be_accessed(cx: &Context) {
    let mut device = builder(cx).guard_pages(2).open().expect("it opens");
    let (start, end) = buffer();
    assert_eq!(end - start, WORDS * word_bytes());
    let whole = start - 2 * page_size()..end + 2 * page_size();
    for guard in [start - 1, whole.start, end, whole.end - 1] {
        assert_eq!(accessible(guard), (false, false), "{guard:#x} of {start:#x}-{end:#x}");
    }
    assert_eq!((accessible(start), accessible(end - 1)), ((true, true), (true, true)));
    let session = enable(&mut device);
    call();
    assert!(!session.disable().expect("disabled").is_empty());
    drop(device);
    let mut left = mappings("").into_iter();
    let left = left.find(|(start, end)| *start < whole.end && *end > whole.start);
    assert_eq!(left, None, "the guards are gone with the device");
}

fn descriptor_is_moved_up_and_closed_on_exec(cx: &Context) {
    let mut device = builder(cx).min_fd(200).open().expect("it opens");
    let other = builder(cx).min_fd(200).open().expect("another one opens");
    assert_eq!((device.as_fd().as_raw_fd(), other.as_fd().as_raw_fd()), (200, 201));
    let flags = nix::fcntl::fcntl(&device, nix::fcntl::FcntlArg::F_GETFD).expect("its flags");
    assert_eq!(flags, libc::FD_CLOEXEC);
    let of_kcov = fs::read_dir("/proc/self/fd").expect("the descriptors").filter(|entry| {
        let path = entry.as_ref().expect("a descriptor").path();
        fs::read_link(path).is_ok_and(|target| target.ends_with("kcov"))
    });
    assert_eq!(of_kcov.count(), 2, "none stays behind");
    let session = enable(&mut device);
    call();
    assert!(!session.disable().expect("disabled").is_empty());
}

fn descriptor_beyond_the_limit_is_refused(cx: &Context) {
    let refused = builder(cx).min_fd(i32::MAX).open();
    assert_eq!(kind(refused), ErrorKind::DescriptorOutOfLimits);
}

fn write_protected_between_sessions(cx: &Context) {
    let mut device = builder(cx).write_protected().open().expect("it opens");
    let (start, end) = buffer();
    let is_read_only =
        || assert_eq!((accessible(start), accessible(end - 1)), ((true, false), (true, false)));
    is_read_only();
    for _ in 0..2 {
        let mut session = enable(&mut device);
        // The first call also records page faults.
        call();
        session.reset();
        call();
        let trace = session.disable().expect("disabled");
        assert!(!trace.is_empty() && !trace.is_truncated());
        is_read_only();
    }
    drop(enable(&mut device));
    is_read_only();
    // A leaked session, and a refusal that makes its pages read-only.
    std::mem::forget(enable(&mut device));
    let refused = device.enable(TracePc).map(drop).expect_err("it is enabled");
    assert_eq!(refused.kind(), ErrorKind::AlreadyEnabled);
    is_read_only();
    assert!(lend(&mut device).trace().is_empty());
    is_read_only();
}

fn write_protected_and_forked(cx: &Context) {
    let mut device = builder(cx).write_protected().open().expect("it opens");
    let (start, _) = buffer();
    let mut lent = lend(&mut device);
    for _ in 0..2 {
        lent.reset().expect("reset");
        assert_eq!((accessible(start), lent.trace().len()), ((true, false), 0));
        let count = child(|| {
            let session = lent.enable().expect("enabled in the child");
            call();
            session.disable().expect("disabled").len()
        });
        assert_eq!((accessible(start), lent.trace().len()), ((true, false), count));
        assert!(count > 0);
    }
}

fn write_protected_with_edges(cx: &Context) {
    let device = builder(cx).write_protected().open().expect("it opens");
    let (start, _) = buffer();
    let token = proposals(cx).uniq_edge().expect("the mode");
    let mut device = EdgeDevice::new(device, token).expect("mapped");
    let session = device.enable_with_pcs().expect("enabled");
    call();
    let (_, edges) = session.disable().expect("disabled");
    assert!(!edges.is_empty());
    assert_eq!(accessible(start), (true, false));
    let mut session = device.enable().expect("enabled");
    session.reset();
    drop(session);
    assert_eq!(accessible(start), (true, false));
}

fn write_protected_with_a_bitmap(cx: &Context) {
    let mut device = builder(cx).write_protected().open().expect("it opens");
    let (start, _) = buffer();
    let unique = proposals(cx).unique().expect("the request");
    for _ in 0..2 {
        let mut session = unique.enable(&mut device, WORDS / 2).expect("enabled");
        session.reset();
        call();
        assert!(!session.disable().expect("disabled").is_empty());
        assert_eq!(accessible(start), (true, false));
    }
}
