//! Mappings and descriptors of Linux, with an ordinary file in the place of the device.

use super::{Number, Pages, Place, host, page_size};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::ptr::{null, null_mut};

const PAGES: usize = 3;

/// A file of [`PAGES`] pages.
fn file() -> OwnedFd {
    let file = memfd_create("kcov", MemfdFlags::CLOEXEC).expect("a file");
    ftruncate(&file, (PAGES * page_size()) as u64).expect("its pages");
    file
}

fn map(file: &OwnedFd, place: Place) -> Result<Pages, i32> {
    Pages::map(file, PAGES * page_size(), place)
}

/// The start of enough free pages that no other test maps: tests choose different numbers.
fn free(number: usize) -> usize {
    (16 << 30) + number * 64 * page_size()
}

/// Whether a mapping begins at this address.
fn begins_at(address: usize) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").expect("a list of mappings");
    maps.lines().any(|line| line.starts_with(&format!("{address:08x}-")))
}

#[test]
fn a_buffer_is_mapped_at_its_address_or_not_at_all() {
    for (number, guard_pages) in [(1, 0), (2, 1)] {
        let place = Place { address: Some(free(number)), guard_pages, ..Place::default() };
        let pages = map(&file(), place).expect("a free address");
        assert_eq!(pages.start().addr().get(), free(number));
        let error = map(&file(), place).expect_err("the first buffer is there");
        assert_eq!(error, Errno::EXIST.raw_os_error());
        assert_eq!(pages.check(PAGES * page_size()), Ok(()), "nothing replaced it");
        drop(pages);
        assert!(!begins_at(free(number) - guard_pages * page_size()));
    }
}

/// As with a proposed request 103, which returns the size of a record.
#[test]
fn a_request_that_returns_a_number_is_not_kcov_s() {
    /// `NS_GET_NSTYPE`, which returns the type of a namespace.
    const GET_TYPE: u32 = 0xb703;
    let namespace = fs::File::open("/proc/self/ns/pid").expect("a namespace").into();
    // SAFETY: the request takes no argument.
    let result = unsafe { host::ioctl(&namespace, GET_TYPE, std::ptr::null()) };
    assert_eq!(result, Err(Errno::NOTTY.raw_os_error()));
}

/// When a terminal hangs up, the process that it controls dies.
#[test]
fn a_refused_terminal_does_not_control_the_process() {
    let (mut terminal, mut end) = (-1, -1);
    // SAFETY: the call stores two descriptors, and takes null pointers for what is not asked.
    let opened =
        unsafe { libc::openpty(&raw mut terminal, &raw mut end, null_mut(), null(), null()) };
    assert_eq!(opened, 0);
    let path = fs::read_link(format!("/proc/self/fd/{end}")).expect("its path");
    // SAFETY: the child allocates nothing and ends with `_exit`.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Child => {
            let leads = nix::unistd::setsid().is_ok();
            let opened = host::open(&path).is_ok();
            let is_free = host::open(Path::new("/dev/tty")).is_err();
            // SAFETY: `_exit` ends the process at once.
            unsafe { libc::_exit(if leads && opened && is_free { 0 } else { 1 }) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
}

/// Another thread may have mapped something where a failed mapping left a hole.
#[test]
fn a_failed_mapping_between_guards_unmaps_only_the_guards() {
    let null = host::open(Path::new("/dev/null")).expect("a file that cannot be mapped");
    let place = Place { address: Some(free(3)), guard_pages: 1, ..Place::default() };
    let error = map(&null, place).expect_err("it cannot be mapped");
    assert_eq!(error, Errno::NODEV.raw_os_error());
    assert!(begins_at(free(3)), "whatever is in the middle stays");
    assert!(!begins_at(free(3) - page_size()) && !begins_at(free(3) + PAGES * page_size()));
}

#[test]
fn a_check_tells_which_pages_are_gone() {
    let file = file();
    let pages = map(&file, Place::default()).expect("mapped");
    let check = |pages_to_check| pages.check(pages_to_check * page_size());
    assert_eq!((check(1), check(PAGES)), (Ok(()), Ok(())));
    ftruncate(&file, page_size() as u64).expect("truncated");
    assert_eq!((check(1), check(PAGES)), (Ok(()), Err(Errno::FAULT.raw_os_error())));
    ftruncate(&file, 0).expect("truncated");
    assert_eq!(check(1), Err(Errno::FAULT.raw_os_error()));
}

#[test]
fn a_descriptor_gets_an_exact_number_only_if_that_is_free() {
    let moved = host::move_to(file(), Number::Exactly(700)).expect("a free number");
    assert_eq!(moved.as_raw_fd(), 700);
    let error = host::move_to(file(), Number::Exactly(700)).expect_err("in use");
    assert_eq!(error, Errno::EXIST.raw_os_error());
    assert!(rustix::fs::fstat(&moved).is_ok(), "nothing replaced it");
    let same = host::move_to(moved, Number::Exactly(700)).expect("its own number");
    assert_eq!(same.as_raw_fd(), 700);
    let higher = host::move_to(file(), Number::AtLeast(700)).expect("another number");
    assert!(higher.as_raw_fd() > 700);
}

/// In a child, whatever has taken the place of pages that it did not inherit stays there.
#[test]
fn a_child_unmaps_only_the_page_that_it_has() {
    let file = file();
    for guard_pages in [0, 1] {
        let place = Place { guard_pages, not_inherited: true, address: Some(free(4)) };
        let pages = map(&file, place).expect("mapped");
        // SAFETY: the child allocates nothing and ends with `_exit`.
        match unsafe { fork() }.expect("a child") {
            ForkResult::Child => {
                let has_only_the_first =
                    pages.check(1).is_ok() && pages.check(2 * page_size()).is_err();
                let second = Some(free(4) + page_size());
                let taken = Pages::map_at(&file, (PAGES - 1) * page_size(), 0, second);
                drop(pages);
                let stays = taken.is_ok_and(|taken| taken.check(usize::MAX).is_ok());
                // SAFETY: `_exit` ends the process at once.
                unsafe { libc::_exit(if stays && has_only_the_first { 0 } else { 1 }) }
            }
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
            }
        }
        assert_eq!(pages.check(PAGES * page_size()), Ok(()));
    }
    assert!(!begins_at(free(4)), "the parent unmaps them");
}
