use crate::shared::Shared;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::pread;
use rustix::param::page_size;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// One child in this many lists the pages that it touched.
const EACH: u32 = 1024;
/// The number of children to ask for a first list. A child that dies early makes none.
const TRIES: u32 = 16;
/// A fault on a file's page also maps its neighbours in an aligned block of this many bytes.
const AROUND: usize = 1 << 16;

/// Bits of an entry in `/proc/PID/pagemap`.
const EXCLUSIVE: u64 = 1 << 56;
const FILE: u64 = 1 << 61;
const PRESENT: u64 = 1 << 63;

/// `PIDFD_SELF_THREAD` of `linux/pidfd.h`.
const PIDFD_SELF: i32 = -10_000;

/// The pages that children of this process touch.
///
/// After fork(2), a child takes a page fault for each page that it writes, and several for its code.
/// Here one child lists these pages, and later children map all of them with two system calls.
/// This is faster, and kcov records fewer page faults. It needs `CONFIG_PROC_PAGE_MONITOR` and
/// a process_madvise(2) that takes `PIDFD_SELF` and this advice, as on Linux 6.18 and 7.3. Elsewhere
/// it does nothing.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Whether the kernel supports it, once that is known.
    is_supported: Option<bool>,
    /// The number of children so far.
    children: u32,
    /// The list that the next child fills.
    list: Option<List>,
    read: Vec<Pages>,
    written: Vec<Pages>,
}

impl Touched {
    /// In the parent, before it forks a child.
    pub(crate) fn before(&mut self) {
        if !*self.is_supported.get_or_insert_with(is_supported) {
            return;
        }
        let turn = self.children % EACH;
        self.children = self.children.wrapping_add(1);
        let is_unknown = self.read.is_empty() && self.written.is_empty();
        if turn == 0 || is_unknown && turn < TRIES {
            self.list = List::new().ok();
        }
    }

    /// In the child, first.
    pub(crate) fn enter(&self) {
        if self.list.is_none() {
            populate(&self.read, libc::MADV_POPULATE_READ);
            populate(&self.written, libc::MADV_POPULATE_WRITE);
        }
    }

    /// In the child, last.
    pub(crate) fn leave(&self) {
        if let Some(list) = &self.list {
            list.fill();
        }
    }

    /// In the parent, after the child has ended.
    pub(crate) fn after(&mut self) {
        if let Some(list) = self.list.take() {
            let (read, written) = list.pages();
            if !(read.is_empty() && written.is_empty()) {
                (self.read, self.written) = (read, written);
            }
        }
    }
}

/// `struct iovec`.
#[derive(Debug)]
#[repr(C)]
struct Pages {
    start: usize,
    bytes: usize,
}

/// Maps the pages in this process, up to the first that it cannot. Their contents stay the same.
/// Returns the number of bytes.
fn advise(pages: &[Pages], advice: libc::c_int) -> io::Result<usize> {
    // SAFETY: the slice has this many elements, laid out like `struct iovec`. Populating pages does
    // not change their contents, and fails where nothing is mapped.
    let advised = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            PIDFD_SELF,
            pages.as_ptr(),
            pages.len(),
            advice,
            0_usize,
        )
    };
    usize::try_from(advised).map_err(|_| io::Error::last_os_error())
}

/// Maps the pages in this process, except for those that are gone.
fn populate(mut pages: &[Pages], advice: libc::c_int) {
    while !pages.is_empty() {
        let mut left = advise(pages, advice).unwrap_or(0);
        let gone = pages.iter().position(|pages| {
            let is_gone = left < pages.bytes;
            left = left.saturating_sub(pages.bytes);
            is_gone
        });
        pages = gone.map_or(&[], |gone| &pages[gone + 1..]);
    }
}

fn is_supported() -> bool {
    let here = (is_supported as *const ()).addr();
    let page = Pages { start: here - here % page_size(), bytes: page_size() };
    advise(&[page], libc::MADV_POPULATE_READ).is_ok() && File::open("/proc/self/pagemap").is_ok()
}

/// A private mapping of the parent, which its children have too.
#[derive(Debug)]
struct Area {
    pages: Range<usize>,
    is_writable: bool,
}

impl Area {
    /// Parses a line of `/proc/PID/maps`. Returns `None` for mappings that are shared, unreadable, or
    /// the kernel's own, such as the vDSO.
    fn parse(line: &str) -> Option<Area> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        let is_kernels = fields.nth(3).is_some_and(|name| name.starts_with("[v"));
        if is_kernels || !permissions.starts_with('r') || !permissions.ends_with('p') {
            return None;
        }
        let page = |address| Some(usize::from_str_radix(address, 16).ok()? / page_size());
        Some(Area { pages: page(start)?..page(end)?, is_writable: permissions.contains('w') })
    }
}

/// A list of pages that a child fills.
#[derive(Debug)]
struct List {
    areas: Vec<Area>,
    /// Addresses of pages, with [`WRITTEN`] if the child wrote to them. 0 ends the list.
    words: Shared,
}

const READ: usize = 0;
const WRITTEN: usize = 1;

/// Returns what the child did to a page with this entry in `/proc/PID/pagemap`; `None` if nothing.
fn mark(entry: u64, is_writable: bool) -> Option<usize> {
    if entry & PRESENT == 0 {
        None
    } else if entry & FILE != 0 {
        Some(READ)
    } else {
        // The parent maps the others, too.
        (entry & EXCLUSIVE != 0 && is_writable).then_some(WRITTEN)
    }
}

impl List {
    fn new() -> io::Result<List> {
        let areas =
            fs::read_to_string("/proc/self/maps")?.lines().filter_map(Area::parse).collect();
        Ok(List { areas, words: Shared::new()? })
    }

    /// In the child: lists the pages that it touched in the parent's areas, until the list is full.
    fn fill(&self) {
        // rustix does not call the C library, so none of its pages are listed.
        let Ok(map) = open(c"/proc/self/pagemap", OFlags::CLOEXEC, Mode::empty()) else { return };
        let mut words = self.words.iter();
        let mut last_block = None;
        for Area { pages, is_writable } in &self.areas {
            // Few entries, so that listing itself touches no further page of the stack.
            let mut entries = [0_u8; 512];
            for first in pages.clone().step_by(entries.len() / 8) {
                let bytes = entries.len().min((pages.end - first) * 8);
                let Ok(read) = pread(&map, &mut entries[..bytes], first as u64 * 8) else { return };
                for (page, entry) in (first..).zip(entries[..read].chunks_exact(8)) {
                    let entry = u64::from_ne_bytes(entry.try_into().expect("eight bytes"));
                    let Some(mark) = mark(entry, *is_writable) else { continue };
                    let block = page * page_size() / AROUND;
                    if mark == READ && last_block.replace(block) == Some(block) {
                        continue;
                    }
                    let Some(word) = words.next() else { return };
                    word.store((page * page_size()) | mark, Ordering::Relaxed);
                }
            }
        }
    }

    /// In the parent: returns the pages that the child only read, and those that it wrote.
    fn pages(&self) -> (Vec<Pages>, Vec<Pages>) {
        let (mut read, mut written) = (Vec::new(), Vec::<Pages>::new());
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        for word in words.take_while(|word| *word != 0) {
            let page = Pages { start: word - word % page_size(), bytes: page_size() };
            let number = word / page_size();
            if !self.areas.iter().any(|area| area.pages.contains(&number)) {
                continue;
            }
            if word & WRITTEN == 0 {
                read.push(page);
            } else if let Some(last) =
                written.last_mut().filter(|last| last.start + last.bytes == page.start)
            {
                last.bytes += page.bytes;
            } else {
                written.push(page);
            }
        }
        (read, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_private_mappings() {
        let page = page_size();
        let line = |permissions: &str, rest: &str| {
            Area::parse(&format!("{:x}-{:x} {permissions} 0 00:00 0 {rest}", 3 * page, 5 * page))
        };
        let area = line("r-xp", "/bin/program").unwrap();
        assert_eq!((area.pages, area.is_writable), (3..5, false));
        assert!(line("rw-p", "").unwrap().is_writable);
        assert!(line("rw-p", "[stack]").is_some());
        for (permissions, rest) in [("rw-s", ""), ("---p", ""), ("r-xp", "[vdso]")] {
            assert!(line(permissions, rest).is_none(), "{permissions} {rest}");
        }
    }

    #[test]
    fn nonsense_in_the_list_is_left_out() {
        let list = List::new().unwrap();
        let here = (is_supported as *const ()).addr();
        let here = here - here % page_size();
        let words = [page_size(), here, usize::MAX, here | WRITTEN];
        list.words.iter().zip(words).for_each(|(at, word)| at.store(word, Ordering::Relaxed));
        let (read, written) = list.pages();
        let starts = |pages: &[Pages]| pages.iter().map(|page| page.start).collect::<Vec<_>>();
        assert_eq!((starts(&read), starts(&written)), (vec![here], vec![here]));
    }

    #[test]
    fn pages_after_one_that_is_gone_are_mapped() {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
        if !is_supported() {
            eprintln!("this kernel does not map lists of pages");
            return;
        }
        let (page, protection) = (page_size(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), 5 * page, protection, MapFlags::PRIVATE)
        };
        let start = start.unwrap();
        for gone in [1, 3] {
            // SAFETY: nothing refers to the page.
            unsafe { mprotect(start.wrapping_byte_add(gone * page), page, MprotectFlags::empty()) }
                .unwrap();
        }
        let pages = [0, 1, 2, 3, 4].map(|n| Pages { start: start.addr() + n * page, bytes: page });
        populate(&pages, libc::MADV_POPULATE_WRITE);
        let map = File::open("/proc/self/pagemap").unwrap();
        let are_present = [0, 1, 2, 3, 4].map(|n| {
            let mut entry = [0; 8];
            pread(&map, &mut entry, ((start.addr() / page + n) * 8) as u64).unwrap();
            u64::from_ne_bytes(entry) & PRESENT != 0
        });
        assert_eq!(are_present, [true, false, true, false, true]);
    }
}
