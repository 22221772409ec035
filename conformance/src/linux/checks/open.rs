//! Opening the device file, its file operations, `KCOV_INIT_TRACE`, unknown requests, and those of
//! programs with another word width.

use super::remote::enabled_for;
use super::*;
use kcov_sys::ioc::Encoding;
use kcov_sys::linux::{
    KCOV_DISABLE, KCOV_ENABLE, KCOV_INIT_TRACE_MIN, KCOV_INIT_TRACE32, KCOV_INIT_TRACE64,
    KCOV_REMOTE_ENABLE,
};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::statfs::{DEBUGFS_MAGIC, statfs};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Barrier;

const NOTHING: Option<&Path> = None;

/// Lets this process mount without effect on others.
fn private_mounts() {
    unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NOTHING, "/", NOTHING, private, NOTHING).expect("private mounts");
}

const ENCODING: Encoding = Encoding::LINUX_NATIVE;

/// Neighbours of the known numbers, and requests of other devices.
fn unknown() -> impl Iterator<Item = u32> {
    let io = [0, 1, 99, 102, 255].map(|number| ENCODING.io(b'c', number));
    let iow = [(1, 8), (100, 8), (102, 16)].map(|(number, size)| ENCODING.iow(b'c', number, size));
    let others = [ENCODING.io(b'd', 100), ENCODING.ior(b'c', 102, 24), 0x5401, 0, u32::MAX];
    io.into_iter().chain(iow).chain(others)
}

fn known() -> [u32; 4] {
    [init_trace_request(), KCOV_ENABLE, KCOV_DISABLE, KCOV_REMOTE_ENABLE]
}

/// Numbers that differ from a known one in a bit.
fn near_misses() -> impl Iterator<Item = u32> {
    let known = known();
    let near = move |number| (0..32).map(move |bit| number ^ (1 << bit));
    known.into_iter().flat_map(near).filter(move |number| !known.contains(number))
}

/// Issues each of them with several kinds of arguments.
#[track_caller]
pub(crate) fn unknown_are_refused(cx: &Context, device: &Device) {
    for number in unknown() {
        cx.refused_by(device, |device| {
            cx.refused(device.request(number, 0));
            cx.refused(device.request(number, 1));
            device.request(number, 4096)
        });
    }
    cx.refused_by(device, |device| {
        near_misses().for_each(|number| cx.refused(device.request(number, 0)));
        device.request(0, 0)
    });
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
            let mounted =
                mount(Some("none"), directory, Some("debugfs"), MsFlags::empty(), NOTHING);
            mounted.expect("debugfs is mounted");
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
        let epoll = Epoll::new(EpollCreateFlags::empty()).expect("epoll");
        call_is_refused(cx, |it| epoll.add(it, EpollEvent::new(EpollFlags::EPOLLIN, 0)));
    }),
    check("open.many-at-once", |cx| {
        // Fewer than the number of files that a process may open by default.
        let devices: Vec<_> = (0..500).map(|_| sized(cx, page_words())).collect();
        let is_sized = |device: &Device| device.init_trace(page_words()).is_err();
        assert!(devices.iter().all(is_sized), "all have a size");
    }),
    check("open.not-built-in-is-refused", |cx| {
        let directory = cx.device().parent().expect("a directory");
        assert_eq!(statfs(directory).expect("statfs").filesystem_type(), DEBUGFS_MAGIC);
        for flags in [OFlag::O_RDWR, OFlag::O_RDONLY, OFlag::O_PATH] {
            cx.refused(Device::open_with(cx.device(), flags));
        }
    }),
    on_device("size.least", open, |_, device| {
        assert_eq!(device.init_trace(KCOV_INIT_TRACE_MIN), Ok(()));
        // The device has a size now, but not that of a page.
        assert_eq!(device.init_trace(KCOV_INIT_TRACE_MIN), Err(Errno(libc::EBUSY)));
        assert_eq!(device.map(page_words()).map(drop), Err(Errno(libc::EINVAL)));
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        call();
        assert_eq!(device.disable(), Ok(()));
    }),
    check("size.greatest", |cx| {
        // Every guest has this much.
        assert_eq!(open(cx).init_trace((48 << 20) / word_bytes() as u64), Ok(()));
        // 2 GiB. A kernel without that much memory logs a warning that looks like a fault.
        let tried = with_console_off(|| open(cx).init_trace(max_words()));
        assert!(matches!(tried, Ok(()) | Err(Errno(libc::ENOMEM))), "{tried:?}");
    }),
    check("size.far-above-greatest-is-refused", |cx| {
        // The last one becomes 512 if truncated to 32 bits.
        for words in [u64::MAX, 1 << 63, 1 << 61, (1 << 32) + 512] {
            cx.refused_by(&open(cx), |device| device.init_trace(words));
        }
    }),
    check("size.large-buffer-is-zeroed", |cx| {
        // Each buffer may get the pages of the one before.
        for round in 0..4 {
            let (_device, map) = mapped_of(cx, LARGE);
            assert!(is_zero(&map), "round {round}");
            map.fill(0, SENTINEL);
        }
    }),
    on_buffer("size.second-time-by-other-thread-is-refused", mapped, |cx, device, map| {
        let meanwhile = || {
            assert!(settled(&map) > 0, "it is traced before");
            cx.refused_by(&device, |device| device.init_trace(COVER_SIZE));
        };
        other_stays_traced(&map, || device.enable(KCOV_TRACE_PC), meanwhile);
    }),
    slow("size.two-threads-at-once", 120, |cx| {
        // Allocating takes long enough that one processor too switches threads meanwhile.
        let words = (32 << 20) / word_bytes() as u64;
        for round in 0..20 {
            let device = open(cx);
            let both = Barrier::new(2);
            let size = || {
                both.wait();
                device.init_trace(words)
            };
            let results = std::thread::scope(|scope| {
                let other = scope.spawn(size);
                [size(), other.join().expect("the other thread")]
            });
            let [first, second] = results.map(Result::err);
            assert!(first.is_none() != second.is_none(), "round {round}: {results:?}");
            assert_eq!(first.or(second), Some(cx.errno()), "round {round}");
        }
    }),
    check("size.by-a-thread-that-collects", |cx| {
        let sizes = || {
            let device = open(cx);
            assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
            device.map(COVER_SIZE).expect("a buffer of that size");
        };
        let remote = enabled_for(cx, &Remote::default());
        sizes();
        remote.disable().expect("disabled");
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        sizes();
        assert!(is_traced(&map), "it is traced as before");
    }),
    on_device("size.holder-of-a-descriptor-needs-no-privilege", open, |cx, device| {
        let (opened, sized) = child(|| {
            setrlimit(Resource::RLIMIT_MEMLOCK, 0, 0).expect("setrlimit");
            setuid(Uid::from_raw(65534)).expect("setuid");
            (Device::open(cx.device()).map(drop), device.init_trace(COVER_SIZE))
        });
        assert_eq!(opened, Err(Errno(libc::EACCES)), "it has no privilege");
        assert_eq!(sized, Ok(()));
        device.map(COVER_SIZE).expect("a buffer of that size");
    }),
    check("request.every-other-number-is-refused", |cx| {
        let known = known();
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        for number in 0..=255 {
            let requests = [ENCODING.io(b'c', number), ENCODING.iow(b'c', number, 8)];
            let requests = requests.into_iter().chain([ENCODING.ior(b'c', number, 8)]);
            for request in requests.filter(|request| !known.contains(request)) {
                map.store(0, 1000);
                cx.refused(device.request(request, 0));
                assert!(map.count() >= 1000, "request {request:#x} has emptied the trace");
            }
        }
        assert!(is_traced(&map), "it is still enabled");
    }),
    check("request.size-for-other-word-width-is-refused", |cx| {
        let other = if word_bytes() == 8 { KCOV_INIT_TRACE32 } else { KCOV_INIT_TRACE64 };
        let device = open(cx);
        cx.refused_by(&device, |device| device.request(other, 512));
        device.init_trace(512).expect("it is still unsized");
    }),
];
