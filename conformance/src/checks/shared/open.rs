//! Opening the device file, and its file operations.

use super::{open, sized};
use crate::check::{Context, checks};
use crate::errno::Errno;
use crate::raw::{Device, KCOV_TRACE_PC, page_words};
use nix::fcntl::OFlag;
use nix::unistd::{Whence, lseek};

checks! {
    "open.instances-are-independent": instances_are_independent,
    "open.access-mode-is-ignored": access_mode_is_ignored,
    "open.read-is-refused": read_is_refused,
    "open.write-is-refused": write_is_refused,
    "open.positioned-read-is-refused": positioned_read_is_refused,
    "open.positioned-write-is-refused": positioned_write_is_refused,
    "open.seek-is-refused": seek_is_refused,
}

fn instances_are_independent(cx: &Context) {
    let (first, second) = (open(cx), open(cx));
    first.init_trace(page_words()).expect("the first is sized");
    assert!(second.map(page_words()).is_err(), "the second has no buffer yet");
    second.init_trace(2 * page_words()).expect("the second is sized");
    let (one, two) = (first.map(page_words()), second.map(2 * page_words()));
    let (one, two) = (one.expect("the first's buffer"), two.expect("the second's buffer"));
    one.store(5, 1);
    assert_eq!(two.load(5), 0);
}

fn access_mode_is_ignored(cx: &Context) {
    for mode in [OFlag::O_RDONLY, OFlag::O_WRONLY] {
        let device = Device::open_with(cx.device(), mode).expect("the device opens");
        assert_eq!(device.init_trace(page_words()), Ok(()), "{mode:?}");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "{mode:?}");
        assert_eq!(device.disable(), Ok(()), "{mode:?}");
    }
}

fn read_is_refused(cx: &Context) {
    let device = sized(cx, page_words());
    cx.refused(nix::unistd::read(&device, &mut [0; 8]).map_err(Errno::from));
}

fn write_is_refused(cx: &Context) {
    let device = sized(cx, page_words());
    cx.refused(nix::unistd::write(&device, &[0; 8]).map_err(Errno::from));
}

fn positioned_read_is_refused(cx: &Context) {
    let device = sized(cx, page_words());
    cx.refused(nix::sys::uio::pread(&device, &mut [0; 8], 0).map_err(Errno::from));
}

fn positioned_write_is_refused(cx: &Context) {
    let device = sized(cx, page_words());
    cx.refused(nix::sys::uio::pwrite(&device, &[0; 8], 0).map_err(Errno::from));
}

fn seek_is_refused(cx: &Context) {
    for whence in [Whence::SeekSet, Whence::SeekCur, Whence::SeekEnd] {
        let device = sized(cx, page_words());
        cx.refused(lseek(&device, 0, whence).map_err(Errno::from));
    }
}
