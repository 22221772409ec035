//! A vhost device. Its worker is a kernel thread that serves one owner.
//!
//! The worker runs one remote section per work item. Kicking a queue queues such an item, even if
//! the queue has neither memory nor a backend: the handler finds that out in recorded code. A queue
//! that has both makes the worker read its memory.

use super::*;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::Arc;

/// `struct vhost_vring_file`.
#[repr(C)]
struct VringFile {
    index: u32,
    fd: RawFd,
}

const LETTER: u32 = 0xaf;
const VHOST_SET_OWNER: libc::Ioctl = libc::_IO(LETTER, 0x01);
const VHOST_RESET_OWNER: libc::Ioctl = libc::_IO(LETTER, 0x02);
const VHOST_SET_LOG_FD: libc::Ioctl = libc::_IOW::<i32>(LETTER, 0x07);
const VHOST_SET_VRING_KICK: libc::Ioctl = libc::_IOW::<VringFile>(LETTER, 0x20);
const RECEIVE: u32 = 0;
const TRANSMIT: u32 = 1;

/// A network device owned by this process. Its worker ends with it.
pub struct Vhost {
    fd: File,
    kick: Arc<EventFd>,
}

impl Vhost {
    /// Opens the device. Without an owner it has no worker.
    pub fn open() -> Result<File> {
        read_write("/dev/vhost-net")
    }

    /// Opens the device and becomes its owner.
    pub fn new() -> Result<Vhost> {
        Vhost::of_queues(&[TRANSMIT])
    }

    /// Opens the device and becomes its owner. One kick queues work of both queues at once.
    pub fn of_both_queues() -> Result<Vhost> {
        Vhost::of_queues(&[RECEIVE, TRANSMIT])
    }

    fn of_queues(queues: &[u32]) -> Result<Vhost> {
        Vhost::kicked_by(Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?), queues)
    }

    /// Creates another device. One kick of the first kicks both queues of the second too.
    pub fn beside(&self) -> Result<Vhost> {
        Vhost::kicked_by(Arc::clone(&self.kick), &[RECEIVE, TRANSMIT])
    }

    fn kicked_by(kick: Arc<EventFd>, queues: &[u32]) -> Result<Vhost> {
        let vhost = Vhost { fd: Vhost::open()?, kick };
        vhost.own(queues)?;
        Ok(vhost)
    }

    fn own(&self, queues: &[u32]) -> Result<()> {
        self.request(VHOST_SET_OWNER, std::ptr::null::<u8>())?;
        for &index in queues {
            let kick = VringFile { index, fd: self.kick.as_raw_fd() };
            self.request(VHOST_SET_VRING_KICK, &raw const kick)?;
        }
        Ok(())
    }

    /// Resets the owner and sets it again, which creates a new worker.
    pub fn own_again(&self) -> Result<()> {
        self.request(VHOST_RESET_OWNER, std::ptr::null::<u8>())?;
        self.own(&[TRANSMIT])
    }

    /// Kicks the queue and waits until the resulting section has ended. See [`flush`](Self::flush).
    pub fn work(&self) {
        self.kick();
        self.flush();
    }

    pub fn kick(&self) {
        self.kick.write(1).expect("the queue is kicked");
    }

    /// Waits until the sections of all queued work have ended. The flush is a section of its own,
    /// which on several processors may end a little later.
    pub fn flush(&self) {
        // Every request about the whole device waits for the worker to finish the queued work.
        let none: RawFd = -1;
        self.request(VHOST_SET_LOG_FD, &raw const none).expect("the log is taken away");
    }

    fn request<T>(&self, number: libc::Ioctl, argument: *const T) -> Result<()> {
        // SAFETY: the argument is the structure that the request reads, or null if it reads none.
        unsafe { ioctl(&self.fd, number, argument.cast_mut()) }
    }
}

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

const VHOST_SET_MEM_TABLE: libc::Ioctl = libc::_IOW::<[u32; 2]>(LETTER, 0x03);
const VHOST_SET_VRING_NUM: libc::Ioctl = libc::_IOW::<[u32; 2]>(LETTER, 0x10);
const VHOST_SET_VRING_ADDR: libc::Ioctl = libc::_IOW::<VringAddr>(LETTER, 0x11);
const VHOST_NET_SET_BACKEND: libc::Ioctl = libc::_IOW::<VringFile>(LETTER, 0x30);
const TUNSETIFF: libc::Ioctl = libc::_IOW::<i32>(b'T' as u32, 202);

const NUMBER: u32 = 1024;
const MOST: u32 = 1 << 15;
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
pub struct Vring {
    // Dropped first: closing the device waits for the worker, which may wait for this page.
    available: Absent,
    vhost: Vhost,
    _used: Map,
    _descriptors: Option<Map>,
    _tap: File,
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

    /// Makes each later kick run a section with thousands of records. The one descriptor becomes
    /// available, and the worker only gives up after as many steps as the queue has descriptors.
    pub fn make_long(&self) {
        self.available.map.store(0, FIRST);
    }

    /// Kicks queues with these descriptors. Returns when each worker is in the resulting section,
    /// where it waits for the last descriptor.
    pub fn begin_all(vrings: &[Vring], chain: &Chain) {
        chain.table.take_away_from(chain.pages);
        vrings.iter().for_each(|vring| vring.kick());
        vrings.iter().for_each(|_| chain.table.wait());
    }
}

impl std::ops::Deref for Vring {
    type Target = Vhost;

    fn deref(&self) -> &Vhost {
        &self.vhost
    }
}

/// Creates a network device that belongs to the returned file descriptor.
fn tap() -> Result<File> {
    let tap = read_write("/dev/net/tun")?;
    // The name is empty, so the kernel chooses one and writes it back.
    let mut request = interface("", libc::IFF_TAP | libc::IFF_NO_PI);
    // SAFETY: the argument has the size that the request reads and writes.
    unsafe { ioctl(&tap, TUNSETIFF, &raw mut request) }?;
    Ok(tap)
}
