//! What a child tells its parent.

use libafl::executors::ExitKind;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A word of memory that this process shares with the children it forks later. Nonsense in it
/// concerns only the execution of the child that wrote it.
#[derive(Debug)]
pub(crate) struct Report(NonNull<AtomicUsize>);

/// What a harness can return. The word is 0 until the child is traced, and then one more than an index.
const KINDS: [ExitKind; 4] = [ExitKind::Ok, ExitKind::Crash, ExitKind::Oom, ExitKind::Timeout];

impl Report {
    pub(crate) fn new() -> io::Result<Report> {
        let (rights, size) = (ProtFlags::READ | ProtFlags::WRITE, size_of::<AtomicUsize>());
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let word = unsafe { mmap_anonymous(null_mut(), size, rights, MapFlags::SHARED) };
        Ok(Report(NonNull::new(word?.cast()).expect("mmap never returns null")))
    }

    fn word(&self) -> &AtomicUsize {
        // SAFETY: `new` mapped this word, page-aligned and zeroed, and only `drop` unmaps it. This
        // process accesses it only through this method, atomically; what other processes store
        // changes the value and nothing else.
        unsafe { self.0.as_ref() }
    }

    /// In the parent, before the child starts.
    pub(crate) fn clear(&self) {
        self.word().store(0, Ordering::Relaxed);
    }

    /// In the child: it is traced.
    pub(crate) fn enabled(&self) {
        self.returned(ExitKind::Ok);
    }

    /// In the child: the harness has returned.
    pub(crate) fn returned(&self, kind: ExitKind) {
        let index = KINDS.iter().position(|known| *known == kind).unwrap_or_default();
        self.word().store(1 + index, Ordering::Relaxed);
    }

    /// In the parent: how the harness ended, or `None` if the child was never traced.
    pub(crate) fn read(&self) -> Option<ExitKind> {
        let index = self.word().load(Ordering::Relaxed).checked_sub(1)?;
        Some(KINDS.get(index).copied().unwrap_or(ExitKind::Ok))
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this word, and no reference from `word` is left, because `drop` borrows
        // `self` exclusively.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<AtomicUsize>()) };
    }
}
