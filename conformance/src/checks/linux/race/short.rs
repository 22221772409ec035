//! Sections so short that thousands of them begin and end while something else is done again and again.

use super::section::of;
use crate::check::{Context, checks};
use crate::linux::remote::{common, usb};
use crate::raw::{Remote, Side, Vhost, race};
use crate::system::mapped_page;

checks! {
    of_two_devices needs(Smp, Remote, Vhost),
    while_disabled_and_enabled needs(Smp, Remote, Vhost),
}

/// Words of a section's area, of which there may be others.
const AREA: u32 = 1 << 9;
/// What is done in each repetition, so many times.
const TURNS: u32 = 100;

fn vhost() -> Vhost {
    Vhost::new().expect("a device that this process owns")
}

fn of_two_devices(cx: &Context) {
    let body = |side: &Side| {
        let (device, map) = mapped_page(cx);
        device.remote_enable(&of(AREA)).expect("enabled");
        let vhost = vhost();
        for number in 0..cx.rounds(50) {
            side.meet();
            for _ in 0..TURNS {
                map.reset();
                vhost.work();
                assert_ne!(map.count(), 0, "repetition {number}: nothing of a section");
            }
        }
    };
    race(body, body);
}

fn while_disabled_and_enabled(cx: &Context) {
    // Many handles are given up slowly.
    let handles: Vec<u64> = (0..64).map(usb).collect();
    let (device, map) = mapped_page(cx);
    let remote = Remote { handles, ..of(AREA) };
    device.remote_enable(&remote).expect("enabled");
    assert_eq!(remote.common, common(), "the child has it too");
    let enables = |side: &Side| {
        // Not before the worker is there.
        side.meet();
        device.disable().expect("disabled");
        for number in 0..cx.rounds(50) {
            side.meet();
            for turn in 0..TURNS {
                let remote = Remote { area: AREA >> (turn % 2), ..remote.clone() };
                assert_eq!(device.remote_enable(&remote), Ok(()), "repetition {number}");
                assert_eq!(device.disable(), Ok(()), "repetition {number}");
            }
            device.remote_enable(&remote).expect("enabled");
            side.meet();
            side.meet();
            assert_ne!(map.count(), 0, "repetition {number}: nothing of a section");
            device.disable().expect("disabled");
        }
    };
    let works = |side: &Side| {
        let vhost = vhost();
        side.meet();
        for _ in 0..cx.rounds(50) {
            side.meet();
            (0..TURNS).for_each(|_| vhost.work());
            side.meet();
            map.reset();
            vhost.work();
            side.meet();
        }
    };
    race(enables, works);
}
