//! What a child tells its parent.

use libafl::executors::ExitKind;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A word of memory that parent and children share. A child may write nonsense to it, which
/// concerns only its own execution.
#[derive(Debug)]
pub(crate) struct Report {
    page: NonNull<AtomicU32>,
}

/// What the word says if it is no [`ExitKind`].
const NOTHING: u32 = 0;
const ENABLED: u32 = 1;

impl Report {
    pub(crate) fn new() -> io::Result<Report> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let page = unsafe { mmap_anonymous(null_mut(), page_size(), protection, MapFlags::SHARED) };
        let page = NonNull::new(page?.cast()).expect("mmap never returns null");
        Ok(Report { page })
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped, aligned and zeroed, and everybody accesses it atomically.
        unsafe { self.page.as_ref() }
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
        // SAFETY: `new` mapped this page, and `word` lends it no longer than `self` lives.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), page_size()) };
    }
}
