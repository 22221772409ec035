//! Memory that blocks whoever touches it, the kernel too, until this program provides it.

use super::*;

/// `struct uffdio_api`: version, features, available requests.
type Api = [u64; 3];
/// `struct uffdio_register`: start, length, mode, available requests.
type Register = [u64; 4];
/// `struct uffdio_copy`: destination, source, length, mode, bytes copied.
type Copy = [u64; 5];

const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::Ioctl = libc::_IOWR::<Api>(0xaa, 0x3f);
const UFFDIO_REGISTER: libc::Ioctl = libc::_IOWR::<Register>(0xaa, 0x00);
const UFFDIO_COPY: libc::Ioctl = libc::_IOWR::<Copy>(0xaa, 0x03);
const UFFDIO_REGISTER_MODE_MISSING: u64 = 1;
const UFFD_EVENT_PAGEFAULT: u8 = 0x12;

/// How many milliseconds a thread may take at most to touch the memory.
const LONG: u16 = 20_000;

/// Pages that are absent until they are provided.
pub struct Absent {
    /// The first field, so that dropping releases all waiters before it unmaps the memory.
    fd: OwnedFd,
    pub map: Map,
}

impl Absent {
    /// Maps this many pages, all absent.
    pub fn pages(number: usize) -> Result<Absent> {
        // SAFETY: the call takes no pointer.
        let fd =
            unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK) };
        let fd = i32::try_from(Errno::check(fd)?).expect("a descriptor");
        // SAFETY: the kernel has just installed this file descriptor, so nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let absent = Absent { fd, map: Map::anonymous(number * page_size())? };
        absent.request(UFFDIO_API, &mut [UFFD_API, 0, 0])?;
        let (start, bytes) = (absent.address(0) as u64, absent.map.bytes() as u64);
        let mut register = [start, bytes, UFFDIO_REGISTER_MODE_MISSING, 0];
        absent.request(UFFDIO_REGISTER, &mut register)?;
        Ok(absent)
    }

    /// Waits until someone blocks on a page.
    pub fn wait(&self) {
        let mut polled = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut polled, PollTimeout::from(LONG)).expect("poll");
        assert_eq!(ready, 1, "nobody has touched the memory");
        let mut message = [0; 32];
        let mut file = File::from(self.fd.try_clone().expect("a descriptor"));
        assert_eq!(file.read(&mut message).expect("the message"), message.len());
        assert_eq!(message[0], UFFD_EVENT_PAGEFAULT, "it is about a page");
    }

    /// Provides a page that starts with these words, followed by zeroes. Releases its waiters.
    pub fn provide(&self, page: usize, start: &[u64]) {
        let mut words = vec![0_u64; page_size() / size_of::<u64>()];
        words[..start.len()].copy_from_slice(start);
        let source = words.as_ptr().expose_provenance() as u64;
        let mut copy = [self.address(page) as u64, source, page_size() as u64, 0, 0];
        self.request(UFFDIO_COPY, &mut copy).expect("the page is provided");
    }

    pub fn take_away(&self) {
        self.take_away_from(0);
    }

    /// Makes this page and all later ones absent again.
    pub fn take_away_from(&self, page: usize) {
        let bytes = self.map.bytes() - page * page_size();
        let start = std::ptr::with_exposed_provenance_mut(self.address(page));
        // SAFETY: the range is the tail of the mapping, and nothing relies on its contents.
        let returned = unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) };
        Errno::check(returned).map(drop).expect("the pages are taken away");
    }

    pub fn address(&self, page: usize) -> usize {
        self.map.address().expose_provenance() + page * page_size()
    }

    fn request<const N: usize>(&self, number: libc::Ioctl, argument: &mut [u64; N]) -> Result<()> {
        // SAFETY: the argument has the size that the request reads and writes. The request only
        // writes to absent pages of the mapping, which is only accessed atomically.
        unsafe { ioctl(&self.fd, number, argument.as_mut_ptr()) }
    }
}
