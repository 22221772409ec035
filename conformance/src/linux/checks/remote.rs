//! `KCOV_REMOTE_ENABLE`: its argument, and the states in which it is refused.

pub(super) mod child;
pub(super) mod half_way;
pub(super) mod handle;
pub(super) mod late;
pub(super) mod partial;
pub(super) mod release;
pub(super) mod section;
pub(super) mod site;
pub(super) mod soft;

use super::while_held;
use crate::checks::prelude::*;
use crate::checks::shared;
use kcov_sys::linux::{KCOV_REMOTE_MAX_HANDLES, KCOV_SUBSYSTEM_USB, kcov_remote_handle};
use libc::PROT_READ;
use nix::fcntl::OFlag;

/// A USB handle that no bus of a guest uses.
pub(super) fn usb(instance: u64) -> u64 {
    let handle = kcov_remote_handle(KCOV_SUBSYSTEM_USB, 0x4b00_0000 + instance);
    assert_ne!(handle, 0);
    handle
}

/// A common handle that no other process uses.
pub(super) fn common() -> u64 {
    u64::from(std::process::id())
}

/// Returns a device that is enabled like this.
pub(super) fn enabled_for(cx: &Context, remote: &Remote) -> Device {
    let device = sized(cx, COVER_SIZE);
    device.remote_enable(remote).expect("enabled remotely");
    device
}

/// Returns a device that collects like this, with its buffer.
pub(super) fn collecting_for(cx: &Context, remote: &Remote) -> (Device, Map) {
    let (device, map) = mapped(cx);
    device.remote_enable(remote).expect("enabled remotely");
    (device, map)
}

/// Returns a device that collects for this thread's common handle.
pub(super) fn enabled(cx: &Context) -> (Device, Map) {
    collecting_for(cx, &Remote::common(common()))
}

pub(super) fn vhost() -> Vhost {
    Vhost::new().expect("a device that this process owns")
}

pub(super) fn vring() -> Vring {
    Vring::new().expect("a device that this process owns")
}

/// Runs `body` while another thread has the device enabled like this.
fn while_owned(device: &Device, remote: &Remote, body: impl FnOnce()) {
    beside_other(|| device.remote_enable(remote), body, || ());
}

/// Whether another device can get these handles, in a thread that is not busy.
pub(super) fn is_free(cx: &Context, remote: &Remote) -> bool {
    thread(|| sized(cx, COVER_SIZE).remote_enable(remote)).is_ok()
}

/// The argument with a common handle and two handles. Built byte by byte, independently of any
/// definition of the structure.
fn argument() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(KCOV_TRACE_PC.to_ne_bytes());
    bytes.extend(4096_u32.to_ne_bytes());
    bytes.extend(2_u32.to_ne_bytes());
    bytes.extend(u32::MAX.to_ne_bytes());
    for handle in [common(), usb(1), usb(2)] {
        bytes.extend(handle.to_ne_bytes());
    }
    bytes
}

/// Two fields of four bytes as the word of the structure that they share.
pub(super) fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// `LONG_MAX / sizeof(unsigned long)` of a 32-bit kernel, in words.
const MOST_OF_32_BITS: u32 = i32::MAX as u32 / 4;

pub(crate) const CHECKS: &[Check] = &[
    check("remote.documented-call", |cx| {
        let (device, _map) = mapped(cx);
        let remote = Remote {
            mode: KCOV_TRACE_PC,
            area: u32::try_from(COVER_SIZE).expect("a size"),
            common: 0x42,
            handles: vec![kcov_remote_handle(KCOV_SUBSYSTEM_USB, 1)],
        };
        assert_eq!(device.remote_enable(&remote), Ok(()));
        assert_eq!(device.disable(), Ok(()));
    }),
    check("remote.argument-layout", |cx| {
        let bytes = argument();
        let device = sized(cx, COVER_SIZE);
        let address = bytes.as_ptr().expose_provenance();
        assert_eq!(device.remote_enable_at(address), Ok(()));
        // The kernel has read each handle, since no one else can get it now.
        let taken =
            |remote: Remote| thread(|| sized(cx, COVER_SIZE).remote_enable(&remote)).is_err();
        assert!(taken(Remote::common(common())) && taken(Remote::of(usb(1))));
        assert!(taken(Remote::of(usb(2))) && !taken(Remote::of(usb(3))));
    }),
    check("remote.argument-need-not-be-aligned", |cx| {
        let device = sized(cx, COVER_SIZE);
        for offset in 0..8 {
            let bytes = [vec![0; offset], argument()].concat();
            let address = bytes.as_ptr().expose_provenance() + offset;
            assert_eq!(device.remote_enable_at(address), Ok(()), "at {address:#x}");
            device.disable().expect("disabled");
        }
    }),
    check("remote.argument-may-be-read-only", |cx| {
        let page = Map::anonymous(page_size()).expect("a page");
        for (index, word) in argument().chunks_exact(8).enumerate() {
            page.store(index, u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        }
        page.protect_from(0, PROT_READ).expect("read-only");
        let device = sized(cx, COVER_SIZE);
        let address = page.address().expose_provenance();
        assert_eq!(device.remote_enable_at(address), Ok(()));
    }),
    check("remote.access-mode-is-ignored", |cx| {
        for mode in [OFlag::O_RDONLY, OFlag::O_WRONLY] {
            let device = Device::open_with(cx.device(), mode).expect("the device opens");
            device.init_trace(COVER_SIZE).expect("sized");
            assert_eq!(device.remote_enable(&Remote::default()), Ok(()), "{mode:?}");
            assert_eq!(device.disable(), Ok(()), "{mode:?}");
        }
    }),
    check("remote.own-thread-is-not-traced", |cx| {
        let (_device, map) = collecting_for(cx, &Remote::of(usb(1)));
        (0..100).for_each(|_| call());
        assert_eq!(map.count(), 0);
    }),
    check("remote.without-handles", |cx| {
        let device = sized(cx, COVER_SIZE);
        assert_eq!(device.remote_enable(&Remote::default()), Ok(()));
        assert_eq!(device.disable(), Ok(()));
    }),
    check("remote.most-handles", |cx| {
        let device = sized(cx, COVER_SIZE);
        let handles: Vec<_> = (0..u64::from(KCOV_REMOTE_MAX_HANDLES)).map(usb).collect();
        // The common handle does not count.
        let all = Remote { handles: handles.clone(), ..Remote::common(common()) };
        assert_eq!(device.remote_enable(&all), Ok(()));
        let other = sized(cx, COVER_SIZE);
        thread(|| {
            for handle in handles {
                assert!(
                    other.remote_enable(&Remote::of(handle)).is_err(),
                    "{handle:#x} is registered"
                );
            }
            let next = usb(KCOV_REMOTE_MAX_HANDLES.into());
            assert_eq!(other.remote_enable(&Remote::of(next)), Ok(()), "another one is free");
        });
    }),
    check("remote.beside-local", |cx| {
        let (local, map) = mapped(cx);
        let remote = sized(cx, COVER_SIZE);
        for _ in 0..2 {
            local.enable(KCOV_TRACE_PC).expect("local first");
            assert_eq!(remote.remote_enable(&Remote::default()), Ok(()));
            remote.disable().expect("disabled");
            assert!(is_traced(&map), "local collection works");
            local.disable().expect("disabled");

            remote.remote_enable(&Remote::default()).expect("remote first");
            assert_eq!(local.enable(KCOV_TRACE_PC), Ok(()));
            assert!(is_traced(&map), "local collection works");
            local.disable().expect("disabled");
            remote.disable().expect("disabled");
        }
    }),
    check("remote.beside-local-comparisons", |cx| {
        let (local, map) = mapped(cx);
        let remote = sized(cx, COVER_SIZE);
        for mode in [KCOV_TRACE_PC, KCOV_TRACE_CMP] {
            let other = Remote { mode, ..Remote::default() };
            for remote_first in [true, false] {
                let enable_remote =
                    || assert_eq!(remote.remote_enable(&other), Ok(()), "mode {mode}");
                if remote_first {
                    enable_remote();
                }
                assert_eq!(local.enable(KCOV_TRACE_CMP), Ok(()), "beside mode {mode}");
                if !remote_first {
                    enable_remote();
                }
                assert!(is_traced(&map), "local collection works");
                assert!(map.load(1) < 8, "the type of a comparison");
                local.disable().expect("disabled");
                remote.disable().expect("disabled");
            }
        }
    }),
    check("remote.comparison-mode", |cx| {
        let device = sized(cx, COVER_SIZE);
        let remote = Remote { mode: KCOV_TRACE_CMP, ..Remote::default() };
        assert_eq!(device.remote_enable(&remote), Ok(()));
    }),
    check("remote.disable-with-argument-is-refused", |cx| {
        let device = enabled_for(cx, &Remote::of(usb(1)));
        for argument in [1, 4096, u64::from(u32::MAX)] {
            cx.refused_by(&device, |device| device.disable_with(argument));
        }
        device.disable().expect("with 0 it is disabled");
    }),
    check("remote.unreadable-argument-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        cx.refused_by(&device, |device| device.remote_enable_at(0));
        let (page, hole) = Map::page_before_hole().expect("two pages");
        cx.refused_by(&device, |device| device.remote_enable_at(hole));
        // The number of handles is readable there, but the rest of the structure is not.
        cx.refused_by(&device, |device| device.remote_enable_at(hole - 16));
        drop(page);
    }),
    check("remote.unreadable-handles-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        let (page, hole) = Map::page_before_hole().expect("two pages");
        let start = page.words() / 2 - 3;
        page.store(start, pair(KCOV_TRACE_PC, 4096));
        page.store(start + 1, pair(0, 0));
        assert_eq!(device.remote_enable_at(hole - 24), Ok(()), "without handles it is whole");
        device.disable().expect("disabled");
        page.store(start + 1, pair(1, 0));
        cx.refused_by(&device, |device| device.remote_enable_at(hole - 24));
    }),
    check("remote.too-many-handles-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        for number in [u64::from(KCOV_REMOTE_MAX_HANDLES) + 1, 4096] {
            let handles: Vec<_> = (0..number).map(usb).collect();
            cx.refused_by(&device, |device| {
                device.remote_enable(&Remote { handles, ..Remote::default() })
            });
        }
    }),
    check("remote.argument-is-read-before-state", |cx| {
        cx.refused_by(&open(cx), |device| device.remote_enable_at(0));
        let device = shared::enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| device.remote_enable_at(0));
    }),
    check("remote.number-of-handles-comes-before-state", |cx| {
        // The thread is busy, which by itself would give another error.
        let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        first.remote_enable(&Remote::default()).expect("enabled");
        let handles: Vec<_> = (0..u64::from(KCOV_REMOTE_MAX_HANDLES) + 1).map(usb).collect();
        cx.refused_by(&second, |second| {
            second.remote_enable(&Remote { handles, ..Remote::default() })
        });
    }),
    check("remote.handles-changed-meanwhile-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        let structure = Absent::pages(2).expect("two pages");
        // The structure starts in the last word of the first page, which is absent. The kernel has
        // read the number of handles on the second page when it blocks on the first to read all.
        let second = page_size() / size_of::<u64>();
        let mut first = vec![0; second];
        first[second - 1] = pair(KCOV_TRACE_PC, 4096);
        let address = structure.address(1) - 8;
        for (number, later) in [(1, 0), (2, 1), (0, 1)] {
            structure.take_away();
            structure.provide(1, &[pair(number, 0), 0, usb(1), usb(2)]);
            cx.refused(while_held(
                || device.remote_enable_at(address),
                || {
                    structure.wait();
                    structure.map.store(second, pair(later, 0));
                    structure.provide(0, &first);
                },
            ));
        }
        assert_eq!(device.remote_enable(&Remote::of(usb(1))), Ok(()), "nothing is left behind");
    }),
    check("remote.before-sizing-is-refused", |cx| {
        cx.refused_by(&open(cx), |device| device.remote_enable(&Remote::default()));
    }),
    check("remote.enabled-locally-is-refused", |cx| {
        let device = shared::enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| device.remote_enable(&Remote::default()));
        cx.refused_by(&device, |device| thread(|| device.remote_enable(&Remote::default())));
    }),
    check("remote.enabled-remotely-is-refused", |cx| {
        let device = enabled_for(cx, &Remote::default());
        cx.refused_by(&device, |device| device.remote_enable(&Remote::default()));
        cx.refused_by(&device, |device| thread(|| device.remote_enable(&Remote::default())));
    }),
    check("remote.busy-if-thread-collects-remotely", |cx| {
        let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        first.remote_enable(&Remote::default()).expect("the first is enabled");
        cx.refused_by(&second, |second| second.remote_enable(&Remote::default()));
        thread(|| second.remote_enable(&Remote::default())).expect("another thread is not busy");
    }),
    check("remote.busy-if-thread-traced-locally", |cx| {
        let (local, remote) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        local.enable(KCOV_TRACE_PC).expect("the first is enabled");
        cx.refused_by(&remote, |remote| remote.remote_enable(&Remote::default()));
        local.disable().expect("disabled");
        remote.remote_enable(&Remote::default()).expect("the second is enabled now");
    }),
    check("remote.device-state-comes-before-thread", |cx| {
        let _first = enabled_for(cx, &Remote::default());
        cx.refused_by(&open(cx), |device| device.remote_enable(&Remote::default()));
    }),
    check("remote.thread-comes-before-mode", |cx| {
        let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        first.remote_enable(&Remote::default()).expect("enabled");
        cx.refused_by(&second, |second| {
            second.remote_enable(&Remote { mode: u32::MAX, ..Remote::default() })
        });
    }),
    check("remote.unknown-mode-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        for mode in [3, 16, 255, 1 << 30, u32::MAX] {
            cx.refused_by(&device, |device| {
                device.remote_enable(&Remote { mode, ..Remote::default() })
            });
        }
        device.enable(KCOV_TRACE_PC).expect("the device is as it was");
    }),
    check("remote.areas-of-any-size-are-accepted", |cx| {
        let device = sized(cx, COVER_SIZE);
        // The kernel allocates areas when sections begin, and none begins here.
        let most = if word_bytes() == 8 { u32::MAX } else { MOST_OF_32_BITS };
        for area in
            [0, 1, 4096, 1 << 27, 1 << 28, 1 << 30, u32::MAX].into_iter().filter(|a| *a <= most)
        {
            let remote = Remote { area, ..Remote::of(usb(1)) };
            assert_eq!(device.remote_enable(&remote), Ok(()), "{area} words");
            device.disable().expect("disabled");
        }
    }),
    check("remote.area-size-overflow-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        for area in [MOST_OF_32_BITS + 1, 1 << 30, u32::MAX] {
            cx.refused_by(&device, |device| {
                device.remote_enable(&Remote { area, ..Remote::default() })
            });
        }
        let area = MOST_OF_32_BITS;
        device.remote_enable(&Remote { area, ..Remote::default() }).expect("the largest area");
    }),
    check("remote.comparisons-not-built-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        let remote = Remote { mode: KCOV_TRACE_CMP, ..Remote::default() };
        cx.refused_by(&device, |device| device.remote_enable(&remote));
        device.remote_enable(&Remote::default()).expect("the other mode works");
    }),
    check("remote.mode-comes-before-handles", |cx| {
        let (holder, device) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        holder.remote_enable(&Remote::of(usb(1))).expect("the handle is taken");
        let remote = Remote { mode: u32::MAX, ..Remote::of(usb(1)) };
        cx.refused_by(&device, |device| thread(|| device.remote_enable(&remote)));
    }),
];
