//! Sections that begin and end while other things are done to their device. They are so long that each
//! fills its area, so that their number follows from that of their records.

use crate::check::{Context, checks};
use crate::linux::remote::common;
use crate::raw::{
    Device, Map, Remote, Vring, areas_of_size, delay, page_size, page_words, pin, wait_for,
};
use crate::system::{index, mapped_of, sized};
use std::time::Duration;

checks! {
    two_end_at_once needs(Smp, Remote, Vhost, Userfaultfd),
    ends_while_disabled needs(Smp, Remote, Vhost, Userfaultfd),
    ends_while_enlarged needs(Smp, Remote, Vhost, Userfaultfd),
    ends_while_closed needs(Smp, Remote, Vhost, Userfaultfd),
    records_come_before_the_count needs(Smp, Remote, Vhost, Userfaultfd),
}

/// What comes at all comes within this, however busy the machine is.
const LONG: Duration = Duration::from_secs(20);
/// Words of a section's area, of which one is the count.
const AREA: u32 = 1 << 12;
/// Records of a section.
const FULL: u64 = AREA as u64 - 1;

fn of(area: u32) -> Remote {
    Remote { area, ..Remote::common(common()) }
}

/// A worker on that processor, whose sections are long.
fn long(processor: usize) -> Vring {
    pin(processor);
    let vring = Vring::new().expect("a device that this process owns");
    vring.make_long();
    vring
}

fn enabled(cx: &Context) -> (Device, Map) {
    let (device, map) = mapped_of(cx, 4 * u64::from(AREA));
    device.remote_enable(&of(AREA)).expect("enabled");
    (device, map)
}

/// What the first record of such a section is.
fn first_record(map: &Map, vring: &Vring) -> u64 {
    map.reset();
    vring.kick();
    assert!(wait_for(LONG, || map.count() == FULL), "{} records of one section", map.count());
    map.load(1)
}

fn two_end_at_once(cx: &Context) {
    let (_device, map) = enabled(cx);
    let both = [long(0), long(1)];
    both.iter().for_each(Vring::flush);
    let first = first_record(&map, &both[0]);
    for number in 0..cx.rounds(50) {
        map.reset();
        both[index(number % 2)].kick();
        delay(number, 0);
        both[index((number + 1) % 2)].kick();
        let done = wait_for(LONG, || map.count() == 2 * FULL);
        assert!(done, "repetition {number}: {} records", map.count());
        // One behind the other, and none in the other's area.
        let starts = [map.load(1), map.load(1 + index(FULL))];
        assert_eq!(starts, [first; 2], "repetition {number}");
    }
}

fn ends_while_disabled(cx: &Context) {
    let (device, map) = enabled(cx);
    let vring = long(1);
    vring.flush();
    pin(0);
    device.disable().expect("disabled");
    for number in 0..cx.rounds(50) {
        map.reset();
        device.remote_enable(&of(AREA)).expect("enabled");
        vring.kick();
        (0..number % 16).for_each(|part| delay(number, part));
        device.disable().expect("disabled");
        let count = map.count();
        assert!([0, FULL].contains(&count), "repetition {number}: {count} records");
        vring.flush();
        assert_eq!(map.count(), count, "repetition {number}: nothing comes later");
    }
}

fn ends_while_enlarged(cx: &Context) {
    let (device, map) = enabled(cx);
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
        vring.flush();
        // A section of after that, if the kick came late, and that of waiting.
        let before = map.count();
        vring.kick();
        let full = u64::from(area) - 1;
        let done = wait_for(LONG, || map.count() >= before + full);
        assert!(done, "repetition {number}: {before}, and then {} records", map.count());
        assert_eq!(map.count(), before + full, "repetition {number}");
    }
}

fn ends_while_closed(cx: &Context) {
    // Of a size that no other check has.
    const PAGES: u64 = 89;
    let buffers = || areas_of_size("kcov_ioctl", PAGES * page_size() as u64);
    for number in 0..cx.rounds(50) {
        let vring = crate::raw::thread(|| {
            let device = sized(cx, PAGES * page_words());
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
}

fn records_come_before_the_count(cx: &Context) {
    let (_device, map) = enabled(cx);
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
            // Not a system call each time: what is looked for lasts a moment.
            turns += 1;
            if turns % (1 << 20) == 0 {
                std::thread::yield_now();
            }
        }
        let (last, count) = (map.load(end), map.count());
        assert_eq!(count, FULL, "repetition {number}");
        assert_ne!(last, 0, "repetition {number}: counted, and not there");
    }
}
