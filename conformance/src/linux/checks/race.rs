//! Races: requests of two processes or threads, handles that several processes take, ends of threads,
//! and closing.
//!
//! Each race runs many times with slightly different timing, and is checked every time. A kernel
//! with its own checkers finds the rest.

pub(super) mod held;
pub(super) mod section;
pub(super) mod short;

use super::*;
use crate::linux::checks::remote::{common, usb};
use std::sync::Barrier;

/// A size in words that takes the kernel long to enable, because it touches each page.
const MANY: u64 = 2 << 20;

type Request<'a> = &'a dyn Fn(&Device) -> Result<()>;

/// Whether the calling thread is untraced: only then can it enable `spare`.
fn is_untraced(spare: &Device) -> bool {
    spare.enable(KCOV_TRACE_PC).is_ok() && spare.disable().is_ok()
}

/// Panics unless one of two results is Ok and the other is the claim's error.
#[track_caller]
fn one_only(cx: &Context, number: &u64, own: Result<()>, other: Result<()>) {
    let refused = own.err().or(other.err());
    assert!(own.is_ok() != other.is_ok(), "repetition {number}: {own:?}, {other:?}");
    assert_eq!(refused, Some(cx.errno()), "repetition {number}");
}

/// Races two processes' requests for one device. Exactly one must succeed.
fn one_enables(cx: &Context, enable: [Request<'_>; 2]) {
    let (device, map) = mapped_of(cx, MANY);
    let body = |side: &Side| {
        let spare = sized(cx, page_words());
        for number in 0..cx.rounds(50) {
            let own = side.at_once(number, || enable[side.number](&device));
            let other = side.exchange(own);
            one_only(cx, &number, own, other);
            if own.is_ok() {
                side.meet();
                device.disable().expect("it is the device of who was told so");
            } else {
                assert!(device.disable().is_err(), "repetition {number}: it is another's");
                assert!(is_untraced(&spare), "repetition {number}");
                side.meet();
            }
            side.meet();
        }
        side.meet();
    };
    race(body, body);
    traces(&device, &map);
}

/// Repeats a request until it succeeds. Until then, the claim's error refuses it.
#[track_caller]
fn when_free<T: std::fmt::Debug>(cx: &Context, number: u64, request: impl Fn() -> Result<T>) -> T {
    let start = Instant::now();
    loop {
        match request() {
            Ok(value) => return value,
            refused => cx.refused(refused),
        }
        assert!(start.elapsed() < LONG, "repetition {number}: it is never free");
    }
}

fn local(device: &Device) -> Result<()> {
    device.enable(KCOV_TRACE_PC)
}

/// Enables a device as soon as the previous owner's process has ended, which ran `then` last.
fn taken_over(cx: &Context, enable: Request<'_>, then: impl Fn()) {
    let (device, map) = mapped_of(cx, 64 * page_words());
    // The process reports through this buffer, because it fills the other one.
    let (_other, shared) = mapped_page(cx);
    pin(0);
    for number in 0..cx.rounds(50) {
        let child: Child<()> = Child::start(|| {
            pin(1);
            map.reset();
            enable(&device).expect("enabled");
            shared.store(1, number + 1);
            then();
        });
        assert!(wait_for(LONG, || shared.load(1) == number + 1), "the child is at it");
        when_free(cx, number, || enable(&device));
        assert_eq!(device.disable(), Ok(()), "repetition {number}");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert!(is_traced(&map), "repetition {number}");
        assert_eq!(device.disable(), Ok(()), "repetition {number}");
        // The child ends by itself, but an executed program returns no result.
        child.kill();
    }
}

/// The maximum number of handles, which takes long to register.
fn all(from: u64) -> Remote {
    Remote::of_all((from..from + 256).map(usb))
}

/// Takes the handles as soon as they are free, and releases them.
fn take(cx: &Context, map: &Map, number: u64, remote: &Remote) {
    let device = sized(cx, page_words());
    while map.load(1) != number + 1 {
        std::thread::yield_now();
    }
    when_free(cx, number, || device.remote_enable(remote));
    assert_eq!(device.disable(), Ok(()), "repetition {number}");
}

pub(crate) const CHECKS: &[Check] = &[
    check("race.two-sizes", |cx| {
        // A process cannot have very many devices at once. Both sizes take about equally
        // long to set.
        const FEW: u64 = 500;
        let sizes = [2 * page_words(), page_words()];
        for first in (0..cx.rounds(2000)).step_by(500) {
            let devices: Vec<_> = (first..first + FEW).map(|number| (number, open(cx))).collect();
            let body = |side: &Side| {
                let (own, others) = (sizes[side.number], sizes[1 - side.number]);
                for (number, device) in &devices {
                    let sized = side.at_once(*number, || device.init_trace(own));
                    one_only(cx, number, sized, side.exchange(sized));
                    if sized.is_ok() {
                        assert!(device.map(own).is_ok() && device.map(others).is_err());
                    }
                }
            };
            race(body, body);
        }
    }),
    check("race.map-while-sized", |cx| {
        const FEW: u64 = 50;
        let words = 16 * page_words();
        for first in (0..cx.rounds(50)).step_by(50) {
            let devices: Vec<_> = (first..first + FEW).map(|number| (number, open(cx))).collect();
            let sizes = |side: &Side| {
                for (number, device) in &devices {
                    side.at_once(*number, || device.init_trace(words)).expect("sized");
                    side.meet();
                }
            };
            let maps = |side: &Side| {
                for (number, device) in &devices {
                    let map = || when_free(cx, *number, || device.map(words));
                    let map = side.at_once(*number, map);
                    // Each page is present and belongs to the device.
                    assert!((0..map.words()).step_by(512).all(|word| map.load(word) == 0));
                    side.meet();
                    device.enable(KCOV_TRACE_PC).expect("enabled");
                    assert!(is_traced(&map), "repetition {number}");
                    device.disable().expect("disabled");
                }
            };
            race(sizes, maps);
        }
    }),
    check("race.two-enable-one-device", |cx| one_enables(cx, [&local, &local])),
    check("race.local-and-remote-enable-one-device", |cx| {
        one_enables(cx, [&local, &|device| device.remote_enable(&Remote::of(usb(1)))]);
    }),
    check("race.handed-over", |cx| {
        let (device, map) = mapped_of(cx, 64 * page_words());
        let body = |side: &Side| {
            let spare = sized(cx, page_words());
            for number in 0..cx.rounds(50) {
                // The two sides take turns in owning the device.
                let mine = side.number as u64 == number % 2;
                if mine && number == 0 {
                    device.enable(KCOV_TRACE_PC).expect("enabled");
                }
                side.at_once(number, || {
                    if mine {
                        device.disable().expect("the device is disabled here");
                    } else {
                        when_free(cx, number, || device.enable(KCOV_TRACE_PC));
                    }
                });
                side.meet();
                if mine {
                    assert!(is_untraced(&spare), "repetition {number}");
                } else {
                    assert!(is_traced(&map), "repetition {number}");
                }
                side.meet();
            }
        };
        race(body, body);
    }),
    check("race.two-disable-one-device", |cx| {
        let (device, map) = mapped_of(cx, 64 * page_words());
        let body = |side: &Side| {
            for number in 0..cx.rounds(50) {
                let mine = side.number as u64 == number % 2;
                if mine {
                    device.enable(KCOV_TRACE_PC).expect("the device is free");
                    assert!(is_traced(&map), "repetition {number}");
                }
                let own = side.at_once(number, || device.disable());
                let other = side.exchange(own);
                one_only(cx, &number, own, other);
                assert_eq!(own.is_ok(), mine, "repetition {number}");
            }
        };
        race(body, body);
    }),
    check("race.thread-ends-while-closed", |cx| {
        // No other check uses this size.
        const PAGES: u64 = 79;
        let buffers = || areas_of_size("kcov_ioctl", PAGES * page_size() as u64);
        assert_eq!(buffers(), 0);
        for number in 0..cx.rounds(50) {
            let device = Mutex::new(Some(sized(cx, PAGES * page_words())));
            let both = Barrier::new(2);
            let open = || device.lock().expect("the device");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let enabled = open().as_ref().expect("a device").enable(KCOV_TRACE_PC);
                    both.wait();
                    enabled.expect("enabled");
                    delay(number, 0);
                });
                both.wait();
                delay(number, 1);
                drop(open().take());
            });
            assert!(wait_for(LONG, || buffers() == 0), "repetition {number}: the buffer is kept");
        }
    }),
    check("race.process-is-killed-while-enabling", |cx| {
        let (device, map) = mapped_of(cx, 64 * page_words());
        let last = map.words() - 1;
        for number in 0..cx.rounds(50) {
            map.store(last, 0);
            let child: Child<()> = Child::start(|| {
                map.store(last, 1);
                loop {
                    // This does not reach the last word, which the parent reads.
                    map.reset();
                    device.enable(KCOV_TRACE_PC).expect("enabled");
                    call();
                    device.disable().expect("disabled");
                }
            });
            assert!(wait_for(LONG, || map.load(last) == 1), "the child is at it");
            delay(number, 0);
            child.kill();
            let enabled = device.enable(KCOV_TRACE_PC);
            assert_eq!(enabled, Ok(()), "repetition {number}: the device is free");
            assert!(is_traced(&map), "repetition {number}");
            device.disable().expect("disabled");
        }
    }),
    check("race.taken-over-from-an-ending-process", |cx| taken_over(cx, &local, || ())),
    check("race.taken-over-from-an-executed-program", |cx| {
        let program = std::env::current_exe().expect("this program");
        let execute = || {
            // The program reads one byte and ends.
            let (input, writer) = nix::unistd::pipe().expect("a pipe");
            nix::unistd::write(&writer, b"!").expect("room in the pipe");
            let mut command = Command::new(&program);
            command.arg("helper").stdin(input).stdout(Stdio::null());
            panic!("{}", command.exec());
        };
        taken_over(cx, &local, execute);
    }),
    check("race.unmapped-while-enabled", |cx| {
        let words = 64 * page_words();
        let (device, map) = mapped_of(cx, words);
        let enables = |side: &Side| {
            for number in 0..cx.rounds(50) {
                side.at_once(number, || {
                    device.enable(KCOV_TRACE_PC).expect("enabled");
                    assert!(is_traced(&map), "repetition {number}");
                    device.disable().expect("disabled");
                });
            }
        };
        let maps = |side: &Side| {
            for number in 0..cx.rounds(50) {
                let other = device.map(words).expect("mapped");
                side.at_once(number, || assert_eq!(other.unmap(), Ok(()), "repetition {number}"));
            }
        };
        race(enables, maps);
    }),
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
    on_buffer("race.remote.handles-of-an-ending-process", mapped_page, |cx, device, map| {
        let remote = Remote { common: common(), ..all(0) };
        for number in 0..cx.rounds(50) {
            map.reset();
            let child: Child<()> = Child::start(|| {
                device.remote_enable(&remote).expect("enabled");
                map.store(1, number + 1);
            });
            take(cx, &map, number, &remote);
            child.end();
            let enabled = device.remote_enable(&remote);
            assert_eq!(enabled, Ok(()), "repetition {number}: the device is free");
            device.disable().expect("disabled");
        }
    }),
    check("race.remote.taken-over-from-an-ending-process", |cx| {
        let remote = Remote { common: common(), ..all(0) };
        taken_over(cx, &|device| device.remote_enable(&remote), || ());
    }),
];
