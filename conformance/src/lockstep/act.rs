//! Operations on a descriptor or a mapping that are the same on both systems.

use super::channel::Patience;
use super::system;
use crate::errno::Result;
use crate::raw::{Device, LONG, Map, call, page_size, wait_for};
use kcov_model::{Call, FULL, Geometry, Outcome, WORD, Work};
use nix::unistd::Whence;
use std::ops::Range;
use std::os::fd::AsFd as _;

/// The word of a mapping to store and load: the last of its first page.
pub(super) fn last() -> usize {
    page_size() / WORD as usize - 1
}

/// Maps the device.
pub(super) fn mapped(device: &Device, geometry: &Geometry) -> Result<Map> {
    let Geometry { bytes, offset, writable, executable, private } = *geometry;
    let mut prot = libc::PROT_READ;
    for (wanted, bit) in [(writable, libc::PROT_WRITE), (executable, libc::PROT_EXEC)] {
        prot |= if wanted { bit } else { 0 };
    }
    let flags = if private { libc::MAP_PRIVATE } else { libc::MAP_SHARED };
    let bytes = usize::try_from(bytes).expect("the length fits");
    Ok(device.map_with(bytes, offset, prot, flags)?.with_whole_pages())
}

/// Issues a system call other than ioctl and mmap.
pub(super) fn misuse(device: &Device, call: Call) -> Result<()> {
    use nix::sys::uio::{pread, pwrite};
    let mut byte = [0];
    match call {
        Call::Read => nix::unistd::read(device, &mut byte).map(drop)?,
        Call::Write => nix::unistd::write(device, &byte).map(drop)?,
        Call::PositionedRead => pread(device, &mut byte, 0).map(drop)?,
        Call::PositionedWrite => pwrite(device, &byte, 0).map(drop)?,
        Call::Seek => nix::unistd::lseek(device.as_fd(), 0, Whence::SeekSet).map(drop)?,
        _ => system::misuse(device, call)?,
    }
    Ok(())
}

/// Makes calls and reports the counts before and after the last one. Leaves the buffer full.
///
/// Only the call runs between the store and the load of the count.
pub(super) fn trace(map: &Map, count: u64, tries: u32) -> Outcome {
    let (mut before, mut after) = (0, 0);
    for turn in 0..tries {
        if turn > 0 {
            // The owner of the buffer may not have come to rest yet.
            std::thread::yield_now();
        }
        if map.is_writable() {
            map.store(0, count);
        }
        before = map.count();
        call();
        after = map.count();
        if before == after {
            break;
        }
    }
    if map.is_writable() {
        map.store(0, FULL);
    }
    Outcome::Counted(before, after)
}

/// Lets the kernel work, and reports the counts before and after. Leaves the buffer full.
pub(super) fn background(map: &Map, work: Work, count: u64, patience: Patience) -> Result<Outcome> {
    let mut after = count;
    for _ in 0..patience.tries {
        map.store(0, count);
        system::work(work)?;
        // A section may end after its work is done.
        let _ = wait_for(LONG, || map.count() >= patience.least);
        after = map.swap(0, FULL);
        if after == count {
            break;
        }
    }
    Ok(Outcome::Counted(count, after))
}

/// A hash of these words.
pub(super) fn digest(map: &Map, words: Range<usize>) -> u64 {
    // Odd, so that no bit is lost.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    words.fold(0, |sum: u64, index| (sum.rotate_left(5) ^ map.load(index)).wrapping_mul(FACTOR))
}
