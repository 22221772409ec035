//! Notices that somebody else opens kcov's device while the command runs.

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::os::fd::RawFd;

/// Watches the device.
pub struct Opens {
    /// `None` if this kernel has no inotify(7).
    watch: Option<Inotify>,
    by_others: bool,
}

impl Opens {
    /// Starts to watch the file that is open here.
    pub fn watch(device: RawFd) -> Opens {
        let watch = || -> Result<Inotify, Errno> {
            let watch = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
            let path = format!("/proc/self/fd/{device}");
            watch.add_watch(path.as_str(), AddWatchFlags::IN_OPEN)?;
            Ok(watch)
        };
        Opens { watch: watch().ok(), by_others: false }
    }

    /// Opens the device here, which does not count.
    pub fn except<T>(&mut self, open: impl FnOnce() -> T) -> T {
        self.by_others();
        let opened = open();
        self.is_new();
        opened
    }

    /// Whether somebody else has opened it.
    pub fn by_others(&mut self) -> bool {
        self.by_others |= self.is_new();
        self.by_others
    }

    fn is_new(&self) -> bool {
        let events = self.watch.as_ref().map(Inotify::read_events);
        events.is_some_and(|events| events.is_ok_and(|events| !events.is_empty()))
    }
}
