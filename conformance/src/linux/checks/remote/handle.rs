//! Accepted and refused handles.

use super::{common, usb};
use crate::check::{Context, checks};
use crate::errno::Result;
use crate::raw::{Child, KCOV_TRACE_CMP, KCOV_TRACE_PC, LONG, Remote, child, thread, wait_for};
use crate::system::checks::{COVER_SIZE, mapped, sized};
use kcov_sys::linux::{KCOV_SUBSYSTEM_COMMON, KCOV_SUBSYSTEM_USB};
use std::time::Duration;

checks! {
    "remote.handle.usb-instances": usb_instances,
    "remote.handle.common-instances": common_instances,
    "remote.handle.subsystems-have-their-own-instances": subsystems_have_their_own_instances,
    "remote.handle.several-at-once": several_at_once,
    "remote.handle.process-id-as-common-instance": process_id_as_common_instance,
    "remote.handle.reserved-bytes-are-refused": reserved_bytes_are_refused,
    "remote.handle.reserved-bytes-of-common-are-refused": reserved_bytes_of_common_are_refused,
    "remote.handle.unknown-subsystem-is-refused": unknown_subsystem_is_refused,
    "remote.handle.unknown-subsystem-of-common-is-refused": unknown_subsystem_of_common_is_refused,
    "remote.handle.common-subsystem-in-array-is-refused": common_subsystem_in_array_is_refused,
    "remote.handle.zero-in-array-is-refused": zero_in_array_is_refused,
    "remote.handle.usb-subsystem-as-common-is-refused": usb_subsystem_as_common_is_refused,
    "remote.handle.twice-in-array-is-refused": twice_in_array_is_refused,
    "remote.handle.registered-by-other-thread-is-refused": registered_by_other_thread_is_refused,
    "remote.handle.registered-for-the-other-mode-is-refused":
        registered_for_the_other_mode_is_refused,
    "remote.handle.registered-by-other-process-is-refused": registered_by_other_process_is_refused,
    "remote.handle.common-registered-by-other-process-is-refused":
        common_registered_by_other_process_is_refused,
    "remote.handle.array-comes-before-common": array_comes_before_common,
    "remote.handle.first-bad-one-decides": first_bad_one_decides,
}

/// The result of an otherwise good request.
fn tried(cx: &Context, remote: &Remote) -> Result<()> {
    sized(cx, COVER_SIZE).remote_enable(remote)
}

/// Asserts that the handle is refused alone and in each place of an array.
#[track_caller]
fn refused_in_array(cx: &Context, handle: u64) {
    cx.refused(tried(cx, &Remote::of(handle)));
    for place in 0..3 {
        let mut handles = vec![usb(1), usb(2)];
        handles.insert(place, handle);
        cx.refused(tried(cx, &Remote { handles, ..Remote::default() }));
    }
}

/// One reserved bit in each of bytes 4 to 6, counted from 0, and all reserved bits.
const RESERVED: [u64; 4] = [1 << 32, 1 << 40, 1 << 55, 0x00ff_ffff << 32];

fn usb_instances(cx: &Context) {
    for instance in [0, 1, 2, 0xff, 0xffff_ffff] {
        let device = sized(cx, COVER_SIZE);
        let remote = Remote::of(KCOV_SUBSYSTEM_USB | instance);
        assert_eq!(device.remote_enable(&remote), Ok(()), "instance {instance:#x}");
        device.disable().expect("disabled");
    }
}

fn common_instances(cx: &Context) {
    for instance in [1, 2, 0xff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
        let device = sized(cx, COVER_SIZE);
        let remote = Remote::common(KCOV_SUBSYSTEM_COMMON | instance);
        assert_eq!(device.remote_enable(&remote), Ok(()), "instance {instance:#x}");
        device.disable().expect("disabled");
    }
}

fn subsystems_have_their_own_instances(cx: &Context) {
    // No bus and no process of a guest has these numbers.
    let instances = 0x4b00_0000..0x4b00_0100;
    let handles = instances.clone().map(|instance| KCOV_SUBSYSTEM_USB | instance).collect();
    let first = sized(cx, COVER_SIZE);
    first.remote_enable(&Remote { handles, ..Remote::default() }).expect("enabled");
    for instance in instances {
        let other = thread(|| tried(cx, &Remote::common(instance)));
        assert_eq!(other, Ok(()), "instance {instance:#x}");
    }
}

fn several_at_once(cx: &Context) {
    let handles = vec![usb(1), usb(2), usb(3)];
    let device = sized(cx, COVER_SIZE);
    assert_eq!(device.remote_enable(&Remote { handles, ..Remote::common(common()) }), Ok(()));
    for remote in [Remote::of(usb(1)), Remote::of(usb(3)), Remote::common(common())] {
        assert!(thread(|| tried(cx, &remote)).is_err(), "{remote:x?} is registered");
    }
}

fn process_id_as_common_instance(cx: &Context) {
    let enable = || {
        let device = sized(cx, COVER_SIZE);
        device.remote_enable(&Remote::common(std::process::id().into()))
    };
    let device = sized(cx, COVER_SIZE);
    assert_eq!(device.remote_enable(&Remote::common(std::process::id().into())), Ok(()));
    assert_eq!(child(enable), Ok(()), "another process, another number");
}

fn reserved_bytes_are_refused(cx: &Context) {
    for bits in RESERVED {
        refused_in_array(cx, usb(3) | bits);
    }
}

fn reserved_bytes_of_common_are_refused(cx: &Context) {
    for bits in RESERVED {
        cx.refused(tried(cx, &Remote::common(common() | bits)));
        // Reserved bits without an instance are not the absent handle.
        cx.refused(tried(cx, &Remote::common(bits)));
    }
}

fn unknown_subsystem_is_refused(cx: &Context) {
    for subsystem in 2..=0xff_u64 {
        refused_in_array(cx, subsystem << 56 | 1);
    }
}

fn unknown_subsystem_of_common_is_refused(cx: &Context) {
    for subsystem in 2..=0xff_u64 {
        cx.refused(tried(cx, &Remote::common(subsystem << 56 | common())));
    }
}

fn common_subsystem_in_array_is_refused(cx: &Context) {
    refused_in_array(cx, KCOV_SUBSYSTEM_COMMON | common());
}

fn zero_in_array_is_refused(cx: &Context) {
    refused_in_array(cx, 0);
}

fn usb_subsystem_as_common_is_refused(cx: &Context) {
    cx.refused(tried(cx, &Remote::common(usb(1))));
}

fn twice_in_array_is_refused(cx: &Context) {
    for handles in [[usb(1), usb(1), usb(2)], [usb(1), usb(2), usb(2)], [usb(1), usb(2), usb(1)]] {
        cx.refused(tried(cx, &Remote { handles: handles.into(), ..Remote::default() }));
    }
}

fn registered_by_other_thread_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.remote_enable(&Remote::of(usb(1))).expect("enabled");
    cx.refused(thread(|| tried(cx, &Remote::of(usb(1)))));
}

fn registered_for_the_other_mode_is_refused(cx: &Context) {
    for (mode, other) in [(KCOV_TRACE_PC, KCOV_TRACE_CMP), (KCOV_TRACE_CMP, KCOV_TRACE_PC)] {
        let device = sized(cx, COVER_SIZE);
        device.remote_enable(&Remote { mode, ..Remote::of(usb(1)) }).expect("enabled");
        cx.refused(thread(|| tried(cx, &Remote { mode: other, ..Remote::of(usb(1)) })));
        device.disable().expect("disabled");
    }
}

/// Tries `remote` while a child has its handles registered.
fn while_child_holds(cx: &Context, remote: &Remote) -> Result<()> {
    // The child reports through its buffer that it holds the handles.
    let (device, map) = mapped(cx);
    let holder: Child<()> = Child::start(|| {
        device.remote_enable(remote).expect("enabled");
        map.store(1, 1);
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    assert!(wait_for(LONG, || map.load(1) == 1), "the child is enabled");
    let tried = tried(cx, remote);
    holder.kill();
    tried
}

fn registered_by_other_process_is_refused(cx: &Context) {
    cx.refused(while_child_holds(cx, &Remote::of(usb(1))));
}

fn common_registered_by_other_process_is_refused(cx: &Context) {
    cx.refused(while_child_holds(cx, &Remote::common(common())));
}

fn array_comes_before_common(cx: &Context) {
    // A bad common handle would give another error.
    let handles = vec![usb(1), usb(1)];
    cx.refused(tried(cx, &Remote { handles, ..Remote::common(usb(2)) }));
}

fn first_bad_one_decides(cx: &Context) {
    // The duplicate at the end would give another error.
    let handles = vec![usb(1), 0, usb(1)];
    cx.refused(tried(cx, &Remote { handles, ..Remote::default() }));
}
