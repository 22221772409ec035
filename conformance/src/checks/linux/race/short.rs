//! Sections so short that very many of them begin and end while something else is done again and again.

use super::section::of;
use crate::check::{Context, checks};
use crate::linux::remote::{common, usb};
use crate::raw::{Remote, Side, Vhost, pin, race};
use crate::system::mapped_page;

checks! {
    many_at_once needs(Smp, Remote, Vhost),
    while_disabled_and_enabled needs(Smp, Remote, Vhost),
}

/// Words of a section's area, of which there may be others.
const AREA: u32 = 1 << 9;
/// What is done in each repetition, so many times.
const TURNS: u32 = 100;

/// Workers that one kick sets to work.
struct Group(Vec<Vhost>);

impl Group {
    /// Some on each of these processors.
    fn on(processors: &[usize]) -> Group {
        let first = Vhost::new().expect("a device that this process owns");
        let mut all = Vec::new();
        for &processor in processors {
            pin(processor);
            all.extend((0..8).map(|_| first.beside().expect("a device that this process owns")));
        }
        all.insert(0, first);
        Group(all)
    }

    /// Kicks them many times.
    fn work(&self) {
        for _ in 0..TURNS {
            self.0[0].kick();
            // The workers of this processor have to have their turn.
            std::thread::yield_now();
        }
    }

    /// Waits until all sections have ended.
    fn flush(&self) {
        self.0.iter().for_each(Vhost::flush);
    }
}

fn many_at_once(cx: &Context) {
    let (device, map) = mapped_page(cx);
    device.remote_enable(&of(AREA)).expect("enabled");
    let group = Group::on(&[1, 0]);
    for number in 0..cx.rounds(50) {
        map.reset();
        group.work();
        group.flush();
        assert_ne!(map.count(), 0, "repetition {number}: nothing of a section");
    }
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
}
