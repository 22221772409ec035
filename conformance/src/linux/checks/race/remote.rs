//! Handles that several processes take and release at the same time.

use super::{one_only, taken_over};
use crate::checks::prelude::*;
use crate::linux::checks::remote::{common, usb};

/// The maximum number of handles, which takes long to register.
fn all(from: u64) -> Remote {
    Remote { handles: (from..from + 256).map(usb).collect(), ..Remote::default() }
}

/// Takes the handles as soon as they are free, and releases them.
fn take(cx: &Context, map: &Map, number: u64, remote: &Remote) {
    let device = sized(cx, page_words());
    while map.load(1) != number + 1 {
        std::thread::yield_now();
    }
    loop {
        match device.remote_enable(remote) {
            Ok(()) => break,
            refused => cx.refused(refused),
        }
    }
    assert_eq!(device.disable(), Ok(()), "repetition {number}");
}

pub(crate) const CHECKS: &[Check] = &[
    check("race.remote.two-take-the-same-handles", |cx| {
        let body = |side: &Side| {
            let device = sized(cx, page_words());
            for number in 0..cx.rounds(50) {
                let own = side.at_once(number, || device.remote_enable(&all(0)));
                let other = side.exchange(own);
                one_only(cx, &number, own, other);
                if own.is_err() {
                    // None of the handles registered before the conflict is left.
                    let disjoint = device.remote_enable(&all(1000));
                    assert_eq!(disjoint, Ok(()), "repetition {number}");
                }
                device.disable().expect("disabled");
            }
        };
        race(body, body);
        let device = sized(cx, page_words());
        assert_eq!(device.remote_enable(&all(0)), Ok(()), "all are free");
    }),
    check("race.remote.handles-come-and-go", |cx| {
        let body = |side: &Side| {
            let device = sized(cx, page_words());
            let own = all(1000 * side.number as u64);
            for number in 0..cx.rounds(50) {
                side.at_once(number, || {
                    for _ in 0..5 {
                        assert_eq!(device.remote_enable(&own), Ok(()), "repetition {number}");
                        assert_eq!(device.disable(), Ok(()), "repetition {number}");
                    }
                });
            }
        };
        race(body, body);
        let device = sized(cx, page_words());
        for from in [0, 1000] {
            assert_eq!(device.remote_enable(&all(from)), Ok(()), "all are free");
            device.disable().expect("disabled");
        }
    }),
    check("race.remote.handles-of-an-ending-process", |cx| {
        let (device, map) = mapped_page(cx);
        let remote = Remote { common: common(), ..all(0) };
        for number in 0..cx.rounds(50) {
            map.reset();
            let child: Child<()> = Child::start(|| {
                device.remote_enable(&remote).expect("enabled");
                map.store(1, number + 1);
            });
            take(cx, &map, number, &remote);
            child.end();
            assert_eq!(
                device.remote_enable(&remote),
                Ok(()),
                "repetition {number}: the device is free"
            );
            device.disable().expect("disabled");
        }
    }),
    check("race.remote.taken-over-from-an-ending-process", |cx| {
        let remote = Remote { common: common(), ..all(0) };
        taken_over(cx, &|device| device.remote_enable(&remote), || ());
    }),
];
