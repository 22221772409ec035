//! What a child tells its parent.

use crate::shared::Shared;
use libafl::executors::ExitKind;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A word of memory that parent and children share. Nonsense in it concerns only the execution of
/// the child that wrote it.
#[derive(Debug)]
pub(crate) struct Report(Shared);

/// What the word says if it is no [`ExitKind`].
const NOTHING: usize = 0;
const ENABLED: usize = 1;

impl Report {
    pub(crate) fn new() -> io::Result<Report> {
        Shared::new().map(Report)
    }

    fn word(&self) -> &AtomicUsize {
        &self.0[0]
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
