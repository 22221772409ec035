//! Sections that end during operations on their device. They are so long that each one fills its
//! area, so the number of records gives the number of sections.

use super::*;
use crate::linux::checks::remote::{common, vring};

/// The size of a section's area in words. One of them is the count.
const AREA: u32 = 1 << 12;
/// The number of records of a section.
const FULL: u64 = AREA as u64 - 1;
/// The same for an area so large that moving it takes the kernel long.
const LARGE: u32 = 1 << 16;
const LARGE_FULL: u64 = LARGE as u64 - 1;
/// Pages of descriptors. Following them leaves more records than any area here holds.
const PAGES: usize = 64;

pub(super) fn of(area: u32) -> Remote {
    Remote { area, ..Remote::common(common()) }
}

/// Returns a worker on this processor that runs long sections.
fn long(processor: usize) -> Vring {
    pin(processor);
    let vring = vring();
    vring.make_long();
    vring
}

fn enabled(cx: &Context, area: u32) -> (Device, Map) {
    let (device, map) = mapped_of(cx, 4 * u64::from(area));
    device.remote_enable(&of(area)).expect("enabled");
    (device, map)
}

/// Workers that block shortly before the ends of their sections, with full areas.
struct Waiting {
    vrings: Vec<Vring>,
    chain: Chain,
}

impl Waiting {
    /// Creates one worker on each of these processors.
    fn on(processors: &[usize]) -> Waiting {
        let chain = Chain::of(PAGES).expect("descriptors");
        let on = |&processor: &usize| {
            pin(processor);
            Vring::on(&chain).expect("a device that this process owns")
        };
        let vrings: Vec<Vring> = processors.iter().map(on).collect();
        pin(0);
        let waiting = Waiting { vrings, chain };
        waiting.flush();
        waiting
    }

    fn begin(&self) {
        Vring::begin_all(&self.vrings, &self.chain);
    }

    fn let_end(&self) {
        self.chain.provide_last();
    }

    fn flush(&self) {
        self.vrings.iter().for_each(|vring| vring.flush());
    }
}

/// Panics unless the section is moved completely or not at all, and not later.
fn all_or_nothing(map: &Map, waiting: &Waiting, number: u64) {
    let count = map.count();
    assert!([0, LARGE_FULL].contains(&count), "repetition {number}: {count} records");
    waiting.flush();
    assert_eq!(map.count(), count, "repetition {number}: nothing comes later");
}

pub(crate) const CHECKS: &[Check] = &[
    check("race.section.two-end-at-once", |cx| {
        let (_device, map) = enabled(cx, LARGE);
        let both = Waiting::on(&[0, 1]);
        let mut first = None;
        for number in 0..cx.rounds(50) {
            map.reset();
            both.begin();
            both.let_end();
            // Does not flush: a flush is a section too, and may come before the second one.
            let done = wait_for(LONG, || map.count() == 2 * LARGE_FULL);
            assert!(done, "repetition {number}: {} records", map.count());
            // The sections follow each other, and neither is in the other's place.
            let starts = [map.load(1), map.load(1 + index(LARGE_FULL))];
            let first = *first.get_or_insert(starts[0]);
            assert_eq!(starts, [first; 2], "repetition {number}");
        }
    }),
    check("race.section.ends-while-disabled", |cx| {
        let (device, map) = enabled(cx, LARGE);
        let waiting = Waiting::on(&[1]);
        device.disable().expect("disabled");
        for number in 0..cx.rounds(50) {
            map.reset();
            device.remote_enable(&of(LARGE)).expect("enabled");
            waiting.begin();
            waiting.let_end();
            delay(number, 0);
            device.disable().expect("disabled");
            all_or_nothing(&map, &waiting, number);
        }
    }),
    check("race.section.ends-while-its-owner-ends", |cx| {
        let (device, map) = enabled(cx, LARGE);
        let waiting = Waiting::on(&[1]);
        device.disable().expect("disabled");
        for number in 0..cx.rounds(50) {
            map.reset();
            thread(|| {
                device.remote_enable(&of(LARGE)).expect("enabled");
                waiting.begin();
                waiting.let_end();
                delay(number, 0);
            });
            all_or_nothing(&map, &waiting, number);
        }
    }),
    check("race.section.ends-while-enlarged", |cx| {
        let (device, map) = enabled(cx, AREA);
        let vring = long(1);
        vring.flush();
        pin(0);
        for number in 0..cx.rounds(50) {
            vring.kick();
            (0..number % 16).for_each(|part| delay(number, part));
            device.disable().expect("disabled");
            map.reset();
            let area = AREA >> (number % 2);
            device.remote_enable(&of(area)).expect("enabled");
            // Takes an area of the new size. The kick's section has ended by then.
            vring.flush();
            // Discards the flush's section, which may still run.
            device.disable().expect("disabled");
            map.reset();
            device.remote_enable(&of(area)).expect("enabled");
            vring.kick();
            let full = u64::from(area) - 1;
            let done = wait_for(LONG, || map.count() >= full);
            assert!(done, "repetition {number}: {} records", map.count());
            assert_eq!(map.count(), full, "repetition {number}");
        }
    }),
    check("race.section.ends-while-closed", |cx| {
        // No other check uses this size.
        const SIZE: u64 = 89;
        let buffers = || areas_of_size("kcov_ioctl", SIZE * page_size() as u64);
        for number in 0..cx.rounds(50) {
            let vring = thread(|| {
                let device = sized(cx, SIZE * page_words());
                device.remote_enable(&of(AREA)).expect("enabled");
                let vring = long(1);
                pin(0);
                vring.kick();
                (0..number % 16).for_each(|part| delay(number, part));
                vring
            });
            vring.flush();
            drop(vring);
            assert!(wait_for(LONG, || buffers() == 0), "repetition {number}: the buffer is kept");
        }
    }),
    check("race.section.records-come-before-the-count", |cx| {
        let (_device, map) = enabled(cx, AREA);
        let vring = long(1);
        vring.flush();
        pin(0);
        let end = index(FULL);
        for number in 0..cx.rounds(50) {
            map.reset();
            map.fill(1, 0);
            vring.kick();
            let mut turns = 0_u64;
            while map.count() == 0 {
                // Mostly spins: the state it looks for lasts only a moment.
                turns += 1;
                if turns % (1 << 20) == 0 {
                    std::thread::yield_now();
                }
            }
            let (last, count) = (map.load(end), map.count());
            assert_eq!(count, FULL, "repetition {number}");
            assert_ne!(last, 0, "repetition {number}: counted, and not there");
        }
    }),
];
