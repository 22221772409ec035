//! A queue of a vhost device that has memory and a backend, so that its worker reads the memory.

use super::vhost::{TRANSMIT, VringFile};
use super::{Absent, Vhost};
use crate::errno::{Errno, Result};
use crate::raw::{Map, page_size};
use libc::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE};
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

/// `struct ifreq`, as far as it is used here.
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

/// Descriptors of the queue.
const NUMBER: u32 = 1024;
/// The most that a queue can have.
const MOST: u32 = 1 << 15;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;
/// What the page says of what is available: nothing, and the first descriptor.
const NOTHING: u64 = 0;
const FIRST: u64 = 1 << 16;
/// `VRING_DESC_F_NEXT`, in the second word of a descriptor.
const NEXT: u64 = 1 << 32;

/// Where the number of the next descriptor stands in the second word of one.
const NEXT_NUMBER: u32 = 48;

/// Descriptors, each of which names the next one. The last names one that no queue has, so that who
/// follows them gives up, and is on a page of its own that can be absent.
#[derive(Debug)]
pub struct Chain {
    table: Absent,
    pages: usize,
}

impl Chain {
    /// So many pages of descriptors, and one for the last.
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

    /// Lets all workers go on that wait for the last descriptor.
    pub fn provide_last(&self) {
        self.table.provide(self.pages, &[0, NEXT | u64::from(u16::MAX) << NEXT_NUMBER]);
    }
}

/// A device with such a queue. Its worker reads what is available, on a page that can be absent.
#[derive(Debug)]
pub struct Vring {
    vhost: Vhost,
    available: Absent,
    _used: Map,
    _descriptors: Option<Map>,
    _tap: OwnedFd,
}

impl Vring {
    /// Makes a device that this process owns. The queue is empty.
    pub fn new() -> Result<Vring> {
        // A descriptor that comes after itself: who follows it goes on until there have been as
        // many as the queue has.
        let descriptors = memory(NUMBER as usize * DESCRIPTOR)?;
        descriptors.store(1, NEXT);
        let vring = Vring::with(descriptors.address().expose_provenance(), NUMBER)?;
        Ok(Vring { _descriptors: Some(descriptors), ..vring })
    }

    /// Makes a device with a queue of these descriptors. After a kick its worker follows them, and
    /// waits for the last one.
    pub fn on(chain: &Chain) -> Result<Vring> {
        let vring = Vring::with(chain.table.address(0), MOST)?;
        vring.make_long();
        Ok(vring)
    }

    fn with(descriptors: usize, number: u32) -> Result<Vring> {
        let tap = tap()?;
        let (used, available) = (memory(page_size())?, Absent::pages(1)?);
        available.provide(0, &[NOTHING]);
        let vhost = Vhost::new()?;
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
        Ok(Vring { vhost, available, _used: used, _descriptors: None, _tap: tap })
    }

    /// Kicks the queue. Returns when the worker is in the section of that, where it waits for what
    /// is available until [`end`](Self::end).
    pub fn begin(&self) {
        self.available.take_away();
        self.vhost.kick();
        self.available.wait();
    }

    /// Lets the worker go on, and waits until its section has ended.
    pub fn end(&self) {
        self.available.provide(0, &[NOTHING]);
        self.vhost.flush();
    }

    /// Kicks the queue, and waits until the section of that has ended.
    pub fn work(&self) {
        self.vhost.work();
    }

    /// From now on each kick makes a section of thousands of records: the one descriptor is made
    /// available, and the worker gives it up only after as many steps as the queue has.
    pub fn make_long(&self) {
        self.available.map.store(0, FIRST);
    }

    /// Kicks the queue.
    pub fn kick(&self) {
        self.vhost.kick();
    }

    /// Kicks queues that have these descriptors. Returns when the worker of each is in the section of
    /// that, where it waits for the last descriptor.
    pub fn begin_all(vrings: &[Vring], chain: &Chain) {
        chain.table.take_away_from(chain.pages);
        vrings.iter().for_each(Vring::kick);
        vrings.iter().for_each(|_| chain.table.wait());
    }

    /// Waits until the sections of all that was queued have ended, its own too.
    pub fn flush(&self) {
        self.vhost.flush();
    }
}

fn memory(bytes: usize) -> Result<Map> {
    Map::new(&-1, bytes, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS)
}

/// A network device that is a descriptor of this process's.
fn tap() -> Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let tap = nix::fcntl::open("/dev/net/tun", flags, Mode::empty())?;
    // Without a name the kernel chooses one, which it writes there.
    let mut request = Ifreq { name: [0; 16], flags: IFF_TAP_NO_PI, rest: [0; 22] };
    // SAFETY: the argument has the size that the request reads and writes.
    let returned = unsafe { libc::ioctl(tap.as_raw_fd(), TUNSETIFF, &raw mut request) };
    Errno::check(returned)?;
    Ok(tap)
}
