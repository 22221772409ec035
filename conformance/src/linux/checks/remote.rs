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

use super::*;
use crate::checks::setup;
use kcov_sys::linux::{KCOV_REMOTE_MAX_HANDLES, KCOV_SUBSYSTEM_USB, kcov_remote_handle};

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

/// Asserts that the device refuses to be enabled like this.
#[track_caller]
fn refuses(cx: &Context, device: &Device, remote: &Remote) {
    cx.refused_by(device, |it| it.remote_enable(remote));
}

/// The same in this thread and in another.
#[track_caller]
fn refuses_all(cx: &Context, device: &Device, remote: &Remote) {
    refuses(cx, device, remote);
    cx.refused_by(device, |it| thread(|| it.remote_enable(remote)));
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
    let halves = [KCOV_TRACE_PC, 4096, 2, u32::MAX].map(u32::to_ne_bytes);
    let handles = [common(), usb(1), usb(2)].map(u64::to_ne_bytes);
    [halves.as_flattened(), handles.as_flattened()].concat()
}

/// Two fields of four bytes as the word of the structure that they share.
pub(super) fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// `LONG_MAX / sizeof(unsigned long)` of a 32-bit kernel, in words.
const MOST_OF_32_BITS: u32 = i32::MAX as u32 / 4;

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("remote.documented-call", mapped, |_, device, _map| {
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
    on_device("remote.argument-need-not-be-aligned", usual, |_, device| {
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
            let device = sized_with(cx, mode, COVER_SIZE);
            assert_eq!(device.remote_enable(&Remote::default()), Ok(()), "{mode:?}");
            assert_eq!(device.disable(), Ok(()), "{mode:?}");
        }
    }),
    check("remote.own-thread-is-not-traced", |cx| {
        let (_device, map) = collecting_for(cx, &Remote::of(usb(1)));
        (0..100).for_each(|_| call());
        assert_eq!(map.count(), 0);
    }),
    on_device("remote.without-handles", usual, |_, device| {
        assert_eq!(device.remote_enable(&Remote::default()), Ok(()));
        assert_eq!(device.disable(), Ok(()));
    }),
    check("remote.most-handles", |cx| {
        let handles = (0..KCOV_REMOTE_MAX_HANDLES.into()).map(usb);
        // The common handle does not count.
        let _device =
            enabled_for(cx, &Remote { common: common(), ..Remote::of_all(handles.clone()) });
        let other = sized(cx, COVER_SIZE);
        thread(|| {
            for handle in handles {
                let tried = other.remote_enable(&Remote::of(handle));
                assert!(tried.is_err(), "{handle:#x} is registered");
            }
            let next = usb(KCOV_REMOTE_MAX_HANDLES.into());
            assert_eq!(other.remote_enable(&Remote::of(next)), Ok(()), "another one is free");
        });
    }),
    on_buffer("remote.beside-local", mapped, |cx, local, map| {
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
    on_buffer("remote.beside-local-comparisons", mapped, |cx, local, map| {
        let remote = sized(cx, COVER_SIZE);
        for mode in [KCOV_TRACE_PC, KCOV_TRACE_CMP] {
            let other = Remote::in_mode(mode);
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
    on_device("remote.comparison-mode", usual, |_, device| {
        assert_eq!(device.remote_enable(&Remote::in_mode(KCOV_TRACE_CMP)), Ok(()));
    }),
    check("remote.disable-with-argument-is-refused", |cx| {
        let device = enabled_for(cx, &Remote::of(usb(1)));
        for argument in [1, 4096, u64::from(u32::MAX)] {
            cx.refused_by(&device, |device| device.disable_with(argument));
        }
        device.disable().expect("with 0 it is disabled");
    }),
    on_device("remote.unreadable-argument-is-refused", usual, |cx, device| {
        cx.refused_by(&device, |device| device.remote_enable_at(0));
        let (page, hole) = Map::page_before_hole().expect("two pages");
        cx.refused_by(&device, |device| device.remote_enable_at(hole));
        // The number of handles is readable there, but the rest of the structure is not.
        cx.refused_by(&device, |device| device.remote_enable_at(hole - 16));
        drop(page);
    }),
    on_device("remote.unreadable-handles-is-refused", usual, |cx, device| {
        let (page, hole) = Map::page_before_hole().expect("two pages");
        let start = page.words() / 2 - 3;
        page.store(start, pair(KCOV_TRACE_PC, 4096));
        page.store(start + 1, pair(0, 0));
        assert_eq!(device.remote_enable_at(hole - 24), Ok(()), "without handles it is whole");
        device.disable().expect("disabled");
        page.store(start + 1, pair(1, 0));
        cx.refused_by(&device, |device| device.remote_enable_at(hole - 24));
    }),
    on_device("remote.too-many-handles-is-refused", usual, |cx, device| {
        for number in [u64::from(KCOV_REMOTE_MAX_HANDLES) + 1, 4096] {
            refuses(cx, &device, &Remote::of_all((0..number).map(usb)));
        }
    }),
    check("remote.argument-is-read-before-state", |cx| {
        cx.refused_by(&open(cx), |device| device.remote_enable_at(0));
        let device = setup::enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| device.remote_enable_at(0));
    }),
    check("remote.number-of-handles-comes-before-state", |cx| {
        // The thread is busy, which by itself would give another error.
        let (_first, second) = (enabled_for(cx, &Remote::default()), sized(cx, COVER_SIZE));
        refuses(cx, &second, &Remote::of_all((0..=KCOV_REMOTE_MAX_HANDLES.into()).map(usb)));
    }),
    on_device("remote.handles-changed-meanwhile-is-refused", usual, |cx, device| {
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
        refuses(cx, &open(cx), &Remote::default());
    }),
    check("remote.enabled-locally-is-refused", |cx| {
        refuses_all(cx, &setup::enabled(cx, KCOV_TRACE_PC), &Remote::default());
    }),
    check("remote.enabled-remotely-is-refused", |cx| {
        refuses_all(cx, &enabled_for(cx, &Remote::default()), &Remote::default());
    }),
    check("remote.busy-if-thread-collects-remotely", |cx| {
        let (_first, second) = (enabled_for(cx, &Remote::default()), sized(cx, COVER_SIZE));
        refuses(cx, &second, &Remote::default());
        thread(|| second.remote_enable(&Remote::default())).expect("another thread is not busy");
    }),
    check("remote.busy-if-thread-traced-locally", |cx| {
        let (local, remote) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        local.enable(KCOV_TRACE_PC).expect("the first is enabled");
        refuses(cx, &remote, &Remote::default());
        local.disable().expect("disabled");
        remote.remote_enable(&Remote::default()).expect("the second is enabled now");
    }),
    check("remote.device-state-comes-before-thread", |cx| {
        let _first = enabled_for(cx, &Remote::default());
        refuses(cx, &open(cx), &Remote::default());
    }),
    check("remote.thread-comes-before-mode", |cx| {
        let (_first, second) = (enabled_for(cx, &Remote::default()), sized(cx, COVER_SIZE));
        refuses(cx, &second, &Remote::in_mode(u32::MAX));
    }),
    on_device("remote.unknown-mode-is-refused", usual, |cx, device| {
        for mode in [3, 16, 255, 1 << 30, u32::MAX] {
            refuses(cx, &device, &Remote::in_mode(mode));
        }
        device.enable(KCOV_TRACE_PC).expect("the device is as it was");
    }),
    on_device("remote.areas-of-any-size-are-accepted", usual, |_, device| {
        // The kernel allocates areas when sections begin, and none begins here.
        let most = if word_bytes() == 8 { u32::MAX } else { MOST_OF_32_BITS };
        let areas = [0, 1, 4096, 1 << 27, 1 << 28, 1 << 30, u32::MAX];
        for area in areas.into_iter().filter(|area| *area <= most) {
            let remote = Remote { area, ..Remote::of(usb(1)) };
            assert_eq!(device.remote_enable(&remote), Ok(()), "{area} words");
            device.disable().expect("disabled");
        }
    }),
    on_device("remote.area-size-overflow-is-refused", usual, |cx, device| {
        for area in [MOST_OF_32_BITS + 1, 1 << 30, u32::MAX] {
            refuses(cx, &device, &Remote { area, ..Remote::default() });
        }
        let area = MOST_OF_32_BITS;
        device.remote_enable(&Remote { area, ..Remote::default() }).expect("the largest area");
    }),
    on_device("remote.comparisons-not-built-is-refused", usual, |cx, device| {
        refuses(cx, &device, &Remote::in_mode(KCOV_TRACE_CMP));
        device.remote_enable(&Remote::default()).expect("the other mode works");
    }),
    check("remote.mode-comes-before-handles", |cx| {
        let (holder, device) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        holder.remote_enable(&Remote::of(usb(1))).expect("the handle is taken");
        let remote = Remote { mode: u32::MAX, ..Remote::of(usb(1)) };
        cx.refused_by(&device, |device| thread(|| device.remote_enable(&remote)));
    }),
];
