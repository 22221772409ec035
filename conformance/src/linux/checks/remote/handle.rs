//! Accepted and refused handles.

use super::*;
use kcov_sys::linux::{KCOV_SUBSYSTEM_COMMON, KCOV_SUBSYSTEM_USB};

/// The result of an otherwise good request.
fn tried(cx: &Context, remote: &Remote) -> Result<()> {
    sized(cx, COVER_SIZE).remote_enable(remote)
}

/// Asserts that a device can be enabled like this, and disabled.
#[track_caller]
fn is_accepted(cx: &Context, remote: &Remote) {
    let device = sized(cx, COVER_SIZE);
    assert_eq!(device.remote_enable(remote), Ok(()), "{remote:x?}");
    device.disable().expect("disabled");
}

/// Asserts that the handle is refused alone and in each place of an array.
#[track_caller]
fn refused_in_array(cx: &Context, handle: u64) {
    cx.refused(tried(cx, &Remote::of(handle)));
    for place in 0..3 {
        let mut handles = vec![usb(1), usb(2)];
        handles.insert(place, handle);
        cx.refused(tried(cx, &Remote::of_all(handles)));
    }
}

/// One reserved bit in each of bytes 4 to 6, counted from 0, and all reserved bits.
const RESERVED: [u64; 4] = [1 << 32, 1 << 40, 1 << 55, 0x00ff_ffff << 32];

/// Tries `remote` while a child has its handles registered.
fn while_child_holds(cx: &Context, remote: &Remote) -> Result<()> {
    // The child reports through its buffer that it holds the handles.
    let (device, map) = mapped(cx);
    let holder: Child<()> = Child::endless(|| {
        device.remote_enable(remote).expect("enabled");
        map.store(1, 1);
    });
    assert!(wait_for(LONG, || map.load(1) == 1), "the child is enabled");
    let tried = tried(cx, remote);
    holder.kill();
    tried
}

pub(crate) const CHECKS: &[Check] = &[
    check("remote.handle.usb-instances", |cx| {
        for instance in [0, 1, 2, 0xff, 0xffff_ffff] {
            is_accepted(cx, &Remote::of(KCOV_SUBSYSTEM_USB | instance));
        }
    }),
    check("remote.handle.common-instances", |cx| {
        for instance in [1, 2, 0xff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
            is_accepted(cx, &Remote::common(KCOV_SUBSYSTEM_COMMON | instance));
        }
    }),
    check("remote.handle.subsystems-have-their-own-instances", |cx| {
        // No bus and no process of a guest has these numbers.
        let instances = 0x4b00_0000..0x4b00_0100;
        let handles = instances.clone().map(|instance| KCOV_SUBSYSTEM_USB | instance);
        let _first = enabled_for(cx, &Remote::of_all(handles));
        for instance in instances {
            let other = thread(|| tried(cx, &Remote::common(instance)));
            assert_eq!(other, Ok(()), "instance {instance:#x}");
        }
    }),
    check("remote.handle.several-at-once", |cx| {
        let handles = [1, 2, 3].map(usb);
        let _device = enabled_for(cx, &Remote { common: common(), ..Remote::of_all(handles) });
        for remote in [Remote::of(usb(1)), Remote::of(usb(3)), Remote::common(common())] {
            assert!(thread(|| tried(cx, &remote)).is_err(), "{remote:x?} is registered");
        }
    }),
    check("remote.handle.process-id-as-common-instance", |cx| {
        let (device, own) = (sized(cx, COVER_SIZE), || Remote::common(std::process::id().into()));
        assert_eq!(device.remote_enable(&own()), Ok(()));
        assert_eq!(child(|| tried(cx, &own())), Ok(()), "another process, another number");
    }),
    check("remote.handle.reserved-bytes-are-refused", |cx| {
        for bits in RESERVED {
            refused_in_array(cx, usb(3) | bits);
        }
    }),
    check("remote.handle.reserved-bytes-of-common-are-refused", |cx| {
        for bits in RESERVED {
            cx.refused(tried(cx, &Remote::common(common() | bits)));
            // A handle with reserved bits set is invalid even if its instance is 0.
            cx.refused(tried(cx, &Remote::common(bits)));
        }
    }),
    check("remote.handle.unknown-subsystem-is-refused", |cx| {
        for subsystem in 2..=0xff_u64 {
            refused_in_array(cx, subsystem << 56 | 1);
        }
    }),
    check("remote.handle.unknown-subsystem-of-common-is-refused", |cx| {
        for subsystem in 2..=0xff_u64 {
            cx.refused(tried(cx, &Remote::common(subsystem << 56 | common())));
        }
    }),
    check("remote.handle.common-subsystem-in-array-is-refused", |cx| {
        refused_in_array(cx, KCOV_SUBSYSTEM_COMMON | common());
    }),
    check("remote.handle.zero-in-array-is-refused", |cx| refused_in_array(cx, 0)),
    check("remote.handle.usb-subsystem-as-common-is-refused", |cx| {
        cx.refused(tried(cx, &Remote::common(usb(1))));
    }),
    check("remote.handle.twice-in-array-is-refused", |cx| {
        for handles in [[1, 1, 2], [1, 2, 2], [1, 2, 1]] {
            cx.refused(tried(cx, &Remote::of_all(handles.map(usb))));
        }
    }),
    check("remote.handle.registered-by-other-thread-is-refused", |cx| {
        let _device = enabled_for(cx, &Remote::of(usb(1)));
        cx.refused(thread(|| tried(cx, &Remote::of(usb(1)))));
    }),
    check("remote.handle.registered-for-the-other-mode-is-refused", |cx| {
        for (mode, other) in [(KCOV_TRACE_PC, KCOV_TRACE_CMP), (KCOV_TRACE_CMP, KCOV_TRACE_PC)] {
            let device = enabled_for(cx, &Remote { mode, ..Remote::of(usb(1)) });
            cx.refused(thread(|| tried(cx, &Remote { mode: other, ..Remote::of(usb(1)) })));
            device.disable().expect("disabled");
        }
    }),
    check("remote.handle.registered-by-other-process-is-refused", |cx| {
        cx.refused(while_child_holds(cx, &Remote::of(usb(1))));
    }),
    check("remote.handle.common-registered-by-other-process-is-refused", |cx| {
        cx.refused(while_child_holds(cx, &Remote::common(common())));
    }),
    check("remote.handle.array-comes-before-common", |cx| {
        // A bad common handle would give another error.
        cx.refused(tried(cx, &Remote { common: usb(2), ..Remote::of_all([usb(1), usb(1)]) }));
    }),
    check("remote.handle.first-bad-one-decides", |cx| {
        // The duplicate at the end would give another error.
        cx.refused(tried(cx, &Remote::of_all([usb(1), 0, usb(1)])));
    }),
];
