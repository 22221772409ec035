//! Opening the device file, and its file operations.

use crate::checks::prelude::*;
use crate::errno::{Errno, Result};
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::statfs::{DEBUGFS_MAGIC, statfs};
use nix::unistd::{Uid, setuid};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const NOTHING: Option<&Path> = None;

/// Lets this process mount without effect on others.
fn private_mounts() {
    unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NOTHING, "/", NOTHING, private, NOTHING).expect("private mounts");
}

pub(crate) const CHECKS: &[Check] = &[
    check("open.file-of-debugfs", |cx| {
        let kind = statfs(cx.device()).expect("statfs").filesystem_type();
        assert_eq!(kind, DEBUGFS_MAGIC);
        assert_eq!(cx.device().file_name(), Some("kcov".as_ref()));
        open(cx);
    }),
    check("open.absent-until-debugfs-is-mounted", |cx| {
        let directory = cx.device().parent().expect("a directory");
        let tried = child(|| -> (Option<Errno>, Option<Errno>) {
            private_mounts();
            umount2(directory, MntFlags::MNT_DETACH).expect("debugfs is unmounted");
            let without = Device::open(cx.device()).err();
            mount(Some("none"), directory, Some("debugfs"), MsFlags::empty(), NOTHING)
                .expect("debugfs is mounted");
            (without, Device::open(cx.device()).err())
        });
        assert_eq!(tried, (Some(Errno(libc::ENOENT)), None));
    }),
    check("open.owner-may-read-and-write-only", |cx| {
        let metadata = std::fs::metadata(cx.device()).expect("stat");
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    }),
    check("open.unprivileged-is-refused", |cx| {
        let tried: Result<()> = child(|| {
            // Not even the path of debugfs is open to others. At another place only
            // the file's own mode can refuse.
            let place = Path::new("/dev/null");
            private_mounts();
            mount(Some(cx.device()), place, NOTHING, MsFlags::MS_BIND, NOTHING).expect("mounted");
            setuid(Uid::from_raw(65534)).expect("setuid");
            Device::open(place).map(drop)
        });
        cx.refused(tried);
    }),
    check("open.poll-is-refused", |cx| {
        let device = sized(cx, page_words());
        let epoll = Epoll::new(EpollCreateFlags::empty()).expect("epoll");
        let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        cx.refused(epoll.add(&device, event).map_err(Errno::from));
    }),
    check("open.many-at-once", |cx| {
        // Fewer than the number of files that a process may open by default.
        let devices: Vec<_> = (0..500).map(|_| sized(cx, page_words())).collect();
        assert!(
            devices.iter().all(|device| device.init_trace(page_words()).is_err()),
            "all have a size"
        );
    }),
    check("open.not-built-in-is-refused", |cx| {
        let directory = cx.device().parent().expect("a directory");
        assert_eq!(statfs(directory).expect("statfs").filesystem_type(), DEBUGFS_MAGIC);
        for flags in [OFlag::O_RDWR, OFlag::O_RDONLY, OFlag::O_PATH] {
            cx.refused(Device::open_with(cx.device(), flags));
        }
    }),
];
