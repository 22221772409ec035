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

/// What the word says if it is no [`ExitKind`].
const NOTHING: usize = 0;
const ENABLED: usize = 1;

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
        self.word().store(NOTHING, Ordering::Relaxed);
    }

    /// In the child: it is traced.
    pub(crate) fn enabled(&self) {
        self.word().store(ENABLED, Ordering::Relaxed);
    }

    /// In the child: the harness has returned.
    pub(crate) fn returned(&self, kind: ExitKind) {
        let word = match kind {
            ExitKind::Crash => 2,
            ExitKind::Oom => 3,
            ExitKind::Timeout => 4,
            ExitKind::Ok | ExitKind::Diff { .. } => ENABLED,
        };
        self.word().store(word, Ordering::Relaxed);
    }

    /// In the parent: how the harness ended, or `None` if the child was never traced.
    pub(crate) fn read(&self) -> Option<ExitKind> {
        match self.word().load(Ordering::Relaxed) {
            NOTHING => None,
            2 => Some(ExitKind::Crash),
            3 => Some(ExitKind::Oom),
            4 => Some(ExitKind::Timeout),
            _ => Some(ExitKind::Ok),
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this word, and no reference from `word` is left, because `drop` borrows
        // `self` exclusively.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<AtomicUsize>()) };
    }
}
