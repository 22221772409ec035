//! Very short sections. Many begin and end during another operation that is repeated.

use super::section::of;
use super::*;
use crate::linux::checks::remote::{common, usb, vhost};

/// The size of a section's area in words.
const AREA: u32 = 1 << 9;
/// How many times each repetition does its operation.
const TURNS: u32 = 100;

/// Workers that one kick starts.
struct Group(Vec<Vhost>);

impl Group {
    /// Creates several workers on each of these processors.
    fn on(processors: &[usize]) -> Group {
        let first = vhost();
        let mut all = Vec::new();
        for &processor in processors {
            pin(processor);
            all.extend((0..8).map(|_| first.beside().expect("a device that this process owns")));
        }
        all.insert(0, first);
        Group(all)
    }

    fn work(&self) {
        for _ in 0..TURNS {
            self.0[0].kick();
            // The workers on this processor need their turn.
            std::thread::yield_now();
        }
    }

    fn flush(&self) {
        self.0.iter().for_each(Vhost::flush);
    }
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("race.short.many-at-once", mapped_page, |cx, device, map| {
        device.remote_enable(&of(AREA)).expect("enabled");
        let group = Group::on(&[1, 0]);
        for number in 0..cx.rounds(50) {
            map.reset();
            group.work();
            group.flush();
            assert_ne!(map.count(), 0, "repetition {number}: nothing of a section");
        }
    }),
    check("race.short.while-disabled-and-enabled", |cx| {
        // Releasing many handles takes long.
        let handles: Vec<u64> = (0..64).map(usb).collect();
        let (device, map) = mapped_page(cx);
        let remote = Remote { handles, ..of(AREA) };
        device.remote_enable(&remote).expect("enabled");
        assert_eq!(remote.common, common(), "the child has it too");
        let enables = |side: &Side| {
            // Waits until the worker exists.
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
            let group = Group::on(&[1]);
            side.meet();
            for _ in 0..cx.rounds(50) {
                side.meet();
                group.work();
                group.flush();
                side.meet();
                map.reset();
                group.work();
                group.flush();
                side.meet();
            }
        };
        race(enables, works);
    }),
];
