//! Requests that are refused after some of their handles have been registered.

use super::*;

/// The handles that another device holds.
fn held() -> Remote {
    Remote { common: common() + (1 << 30), ..Remote::of(usb(9)) }
}

/// Requests that register handles before they are refused, while another device holds [`held`].
fn refused() -> Vec<Remote> {
    let array = |handles: &[u64]| Remote { common: common(), ..Remote::of_all(handles.to_vec()) };
    vec![
        // A duplicate handle, in the middle and at the end.
        array(&[usb(1), usb(2), usb(1), usb(3)]),
        array(&[usb(1), usb(2), usb(3), usb(3)]),
        // Another device's handle, in the middle and at the end.
        array(&[usb(1), usb(9), usb(2)]),
        array(&[usb(1), usb(2), usb(9)]),
        // A bad handle, in the middle and at the end.
        array(&[usb(1), 0, usb(2)]),
        array(&[usb(1), usb(2), usb(3) | 1 << 32]),
        // Another device's common handle, and a bad one.
        Remote { common: held().common, ..array(&[usb(1), usb(2)]) },
        Remote { common: usb(3), ..array(&[usb(1), usb(2)]) },
    ]
}

/// Makes each of these requests, all of which are refused, and runs `after` after each.
fn each(cx: &Context, device: &Device, after: impl Fn(&Remote) + Sync) {
    let holder = sized(cx, COVER_SIZE);
    thread(|| {
        holder.remote_enable(&held()).expect("the other holds its handles");
        // In a separate thread, since the holder's is busy.
        thread(|| {
            for remote in refused() {
                assert!(device.remote_enable(&remote).is_err(), "{remote:x?}");
                after(&remote);
            }
        });
    });
}

pub(crate) const CHECKS: &[Check] = &[
    check("remote.half-way.frees-handles", |cx| {
        each(cx, &sized(cx, COVER_SIZE), |refused| {
            for handle in [usb(1), usb(2), usb(3)] {
                assert!(is_free(cx, &Remote::of(handle)), "{handle:#x} after {refused:x?}");
            }
            assert!(is_free(cx, &Remote::common(common())), "{refused:x?}");
        });
    }),
    check("remote.half-way.leaves-others-handles", |cx| {
        each(cx, &sized(cx, COVER_SIZE), |refused| {
            assert!(!is_free(cx, &Remote::of(usb(9))), "{refused:x?}");
            assert!(!is_free(cx, &Remote::common(held().common)), "{refused:x?}");
        });
    }),
    on_buffer("remote.half-way.leaves-device", mapped, |cx, device, map| {
        each(cx, &device, |refused| {
            assert_eq!(thread(|| device.enable(KCOV_TRACE_PC)), Ok(()), "{refused:x?}");
            // The device takes its current mode, and this thread as its owner.
            device.enable(KCOV_TRACE_PC).expect("enabled");
            assert!(is_traced(&map) && map.load(1) >= 4096, "{refused:x?}");
            device.disable().expect("disabled");
            mark_from(&map, 5);
            assert!(unchanged(&map, || device.remote_enable(refused)).is_err());
        });
    }),
    on_device("remote.half-way.leaves-thread", usual, |cx, device| {
        each(cx, &device, |refused| {
            assert!(device.disable().is_err(), "there is nothing to disable: {refused:x?}");
            let other = sized(cx, COVER_SIZE);
            let good = Remote { common: common(), ..Remote::of_all([1, 2, 3].map(usb)) };
            assert_eq!(other.remote_enable(&good), Ok(()), "{refused:x?}");
            other.disable().expect("disabled");
            assert_eq!(other.enable(KCOV_TRACE_PC), Ok(()), "{refused:x?}");
            other.disable().expect("disabled");
        });
    }),
    on_buffer("remote.half-way.leaves-no-common-handle", mapped, |cx, holder, inherited| {
        let (next, requested) = mapped(cx);
        let device = sized(cx, COVER_SIZE);
        holder.remote_enable(&held()).expect("the other holds its handles");
        for refused in refused() {
            // A new thread each, which inherits the holder's handle.
            thread(|| {
                vhost().work();
                assert!(settled(&inherited) > 0, "it is inherited");
                inherited.reset();
                assert!(device.remote_enable(&refused).is_err(), "{refused:x?}");
                let later = vhost();
                thread(|| {
                    next.remote_enable(&Remote::common(common())).expect("the handle is free");
                    later.work();
                    let counts = all_settled(&[&inherited, &requested]);
                    assert_eq!(counts, [0, 0], "{refused:x?}");
                    vhost().work();
                    assert!(settled(&requested) > 0, "of the thread that has it now");
                    requested.reset();
                });
            });
        }
    }),
    check("remote.half-way.keeps-no-reference", |cx| {
        let before = areas_of("kcov_ioctl");
        for _ in 0..10 {
            let device = sized(cx, COVER_SIZE);
            each(cx, &device, |_| ());
        }
        // There are fewer if an earlier one was freed late.
        assert!(areas_of("kcov_ioctl") <= before, "buffers of devices that are closed");
    }),
];
