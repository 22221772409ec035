//! A queue of a vhost device with memory and a backend, so the worker reads that memory.

use super::vhost::{TRANSMIT, VringFile};
use super::{Absent, Vhost};
use crate::errno::{Errno, Result};
use crate::raw::{Map, page_size};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// `struct vhost_vring_addr`.
#[repr(C)]
struct VringAddr {
    index: u32,
    flags: u32,
    descriptors: u64,
    used: u64,
    available: u64,
    log: u64,
}

/// The part of `struct ifreq` that is used here.
#[repr(C)]
struct Ifreq {
    name: [u8; 16],
    flags: libc::c_short,
    rest: [u8; 22],
}

const LETTER: u32 = 0xaf;
const VHOST_SET_MEM_TABLE: libc::Ioctl = libc::_IOW::<[u32; 2]>(LETTER, 0x03);
const VHOST_SET_VRING_NUM: libc::Ioctl = libc::_IOW::<[u32; 2]>(LETTER, 0x10);
const VHOST_SET_VRING_ADDR: libc::Ioctl = libc::_IOW::<VringAddr>(LETTER, 0x11);
const VHOST_NET_SET_BACKEND: libc::Ioctl = libc::_IOW::<VringFile>(LETTER, 0x30);
const TUNSETIFF: libc::Ioctl = libc::_IOW::<i32>(b'T' as u32, 202);
const IFF_TAP_NO_PI: libc::c_short = 0x1002;

/// The number of descriptors in the queue.
const NUMBER: u32 = 1024;
/// The maximum size of a queue.
const MOST: u32 = 1 << 15;
/// The size of a descriptor in bytes.
const DESCRIPTOR: usize = 16;
/// First words of the available ring: one for an empty queue, one for the first descriptor.
const NOTHING: u64 = 0;
const FIRST: u64 = 1 << 16;
/// `VRING_DESC_F_NEXT`, in the second word of a descriptor.
const NEXT: u64 = 1 << 32;

/// The position of the next descriptor's number in a descriptor's second word.
const NEXT_NUMBER: u32 = 48;

/// A chain of descriptors. The last one has a page of its own, which can be absent. Its next number
/// is out of range, so the worker gives up there.
#[derive(Debug)]
pub struct Chain {
    table: Absent,
    pages: usize,
}

impl Chain {
    /// Creates this many pages of descriptors, and one more for the last descriptor.
    pub fn of(pages: usize) -> Result<Chain> {
        let each = page_size() / DESCRIPTOR;
        let table = Absent::pages(pages + 1)?;
        let following = |number: usize| [0, NEXT | (number as u64 + 1) << NEXT_NUMBER];
        for page in 0..pages {
            let words: Vec<u64> = (page * each..(page + 1) * each).flat_map(following).collect();
            table.provide(page, &words);
        }
        Ok(Chain { table, pages })
    }

    /// Releases all workers that wait for the last descriptor.
    pub fn provide_last(&self) {
        self.table.provide(self.pages, &[0, NEXT | u64::from(u16::MAX) << NEXT_NUMBER]);
    }
}

/// A device with such a queue. Its worker reads the available ring from a page that can be absent.
#[derive(Debug)]
pub struct Vring {
    // Dropped first: closing the device waits for the worker, which may wait for this page.
    available: Absent,
    vhost: Vhost,
    _used: Map,
    _descriptors: Option<Map>,
    _tap: OwnedFd,
}

impl Vring {
    /// Creates a device owned by this process, with an empty queue.
    pub fn new() -> Result<Vring> {
        // The descriptor points to itself, so the worker follows it as many times as the queue has
        // descriptors.
        let descriptors = Map::anonymous(NUMBER as usize * DESCRIPTOR)?;
        descriptors.store(1, NEXT);
        let vring = Vring::with(descriptors.address().expose_provenance(), NUMBER)?;
        Ok(Vring { _descriptors: Some(descriptors), ..vring })
    }

    /// Creates a device with a queue of these descriptors. After a kick, the worker follows them
    /// and waits for the last one.
    pub fn on(chain: &Chain) -> Result<Vring> {
        let vring = Vring::with(chain.table.address(0), MOST)?;
        vring.make_long();
        Ok(vring)
    }

    fn with(descriptors: usize, number: u32) -> Result<Vring> {
        let tap = tap()?;
        // Opened before the page: the kernel releases a killed process's files in reverse order.
        // The release of the device waits for the worker, and the worker may wait for the page.
        let vhost = Vhost::new()?;
        let (used, available) = (Map::anonymous(page_size())?, Absent::pages(1)?);
        available.provide(0, &[NOTHING]);
        let (no_regions, number) = ([0_u32; 2], [TRANSMIT, number]);
        vhost.request(VHOST_SET_MEM_TABLE, &raw const no_regions)?;
        vhost.request(VHOST_SET_VRING_NUM, &raw const number)?;
        let address = VringAddr {
            index: TRANSMIT,
            flags: 0,
            descriptors: descriptors as u64,
            used: used.address().expose_provenance() as u64,
            available: available.address(0) as u64,
            log: 0,
        };
        vhost.request(VHOST_SET_VRING_ADDR, &raw const address)?;
        let backend = VringFile { index: TRANSMIT, fd: tap.as_raw_fd() };
        vhost.request(VHOST_NET_SET_BACKEND, &raw const backend)?;
        vhost.flush();
        Ok(Vring { available, vhost, _used: used, _descriptors: None, _tap: tap })
    }

    /// Kicks the queue. Returns when the worker is in the resulting section, where it blocks on the
    /// available ring until [`end`](Self::end).
    pub fn begin(&self) {
        self.available.take_away();
        self.vhost.kick();
        self.available.wait();
    }

    /// Releases the worker and waits until its section has ended.
    pub fn end(&self) {
        self.available.provide(0, &[NOTHING]);
        self.vhost.flush();
    }

    /// Kicks the queue and waits until the resulting section has ended.
    pub fn work(&self) {
        self.vhost.work();
    }

    /// Makes each later kick run a section with thousands of records. The one descriptor becomes
    /// available, and the worker only gives up after as many steps as the queue has descriptors.
    pub fn make_long(&self) {
        self.available.map.store(0, FIRST);
    }

    /// Kicks the queue.
    pub fn kick(&self) {
        self.vhost.kick();
    }

    /// Kicks queues with these descriptors. Returns when each worker is in the resulting section,
    /// where it waits for the last descriptor.
    pub fn begin_all(vrings: &[Vring], chain: &Chain) {
        chain.table.take_away_from(chain.pages);
        vrings.iter().for_each(Vring::kick);
        vrings.iter().for_each(|_| chain.table.wait());
    }

    /// Waits until the sections of all queued work have ended, including that of the flush itself.
    pub fn flush(&self) {
        self.vhost.flush();
    }
}

/// Creates a network device that belongs to the returned file descriptor.
fn tap() -> Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let tap = nix::fcntl::open("/dev/net/tun", flags, Mode::empty())?;
    // The name is empty, so the kernel chooses one and writes it back.
    let mut request = Ifreq { name: [0; 16], flags: IFF_TAP_NO_PI, rest: [0; 22] };
    // SAFETY: the argument has the size that the request reads and writes.
    let returned = unsafe { libc::ioctl(tap.as_raw_fd(), TUNSETIFF, &raw mut request) };
    Errno::check(returned)?;
    Ok(tap)
}
