//! Records of background work: that of a vhost device's worker, the kernel threads of io_uring
//! rings, and the hub driver of a USB bus.

use super::*;
use kcov_sys::linux::{KCOV_SUBSYSTEM_USB, kcov_remote_handle};
use nix::sys::memfd::{MFdFlags, memfd_create};

fn ring() -> Ring {
    Ring::new().expect("a ring")
}

/// The handle of a gadget's bus.
pub(super) fn bus() -> u64 {
    kcov_remote_handle(KCOV_SUBSYSTEM_USB, Gadget::bus())
}

/// Waits until there are more than `count` records. A section's records appear when it ends, which
/// may be after its work is done.
pub(super) fn grows_beyond(map: &Map, count: u64) -> bool {
    wait_for(LONG, || map.count() > count)
}

/// The records after the first `before`.
pub(super) fn since(map: &Map, before: u64) -> Vec<u64> {
    map.copy(1 + index(before), index(map.count() - before))
}

/// Waits until a section of the hub driver has ended. Each starts in hub_event.
fn hub_is_recorded(map: &Map) -> bool {
    let symbols = symbols();
    wait_for(LONG, || symbols.any_in("hub_event", &since(map, 0)))
}

/// Panics if this thread still passes on the handle that its device had.
fn has_no_handle(device: &Device, map: &Map, handle: u64) {
    let later = vhost();
    thread(|| {
        device.remote_enable(&Remote::common(handle)).expect("enabled by another thread");
        later.work();
        assert_eq!(settled(map), 0, "of a thread that had the handle once");
        vhost().work();
        assert!(map.count() > 0, "of the thread that has it now");
    });
}

/// Panics unless a section adds nothing when the device is disabled and enabled again so many times
/// while it runs, and the next section adds something. Each section has a new thread's worker.
fn is_discarded(device: &Device, map: &Map, remote: &Remote, times: usize) {
    thread(|| {
        device.remote_enable(remote).expect("enabled");
        map.reset();
        let copies = Copies::held().expect("a ring");
        assert_eq!(settled(map), 0, "its section has not ended");

        for _ in 0..times {
            device.disable().expect("disabled");
            device.remote_enable(remote).expect("enabled again");
        }
        copies.give();
        copies.complete();
        assert_eq!(settled(map), 0, "of the section that was running then, {times} times before");
        copies.begin();
        copies.complete();
        assert!(grows_beyond(map, 0), "of a section that began afterwards");
    });
}

pub(crate) const CHECKS: &[Check] = &[
    slow("remote.section.global-task-is-collected", 30, |cx| {
        let (_device, map) = collecting_for(cx, &Remote::of(bus()));
        let gadget = Gadget::connect().expect("a device is connected");
        gadget.set_up();
        assert!(hub_is_recorded(&map), "{} records, none of the hub driver", map.count());
    }),
    slow("remote.section.soft-interrupt-is-collected", 30, |cx| {
        let (_device, map) = collecting_for(cx, &Remote::of(bus()));
        // Until it asks again, the driver is in one section. Its records appear when it ends, so those
        // that appear meanwhile are from the softirqs of the answer. The section of an event before
        // may end late on a busy host: then another device shows it.
        let shown = (0..5).any(|_| {
            let gadget = Gadget::connect().expect("a device is connected");
            let asked = gadget.asked();
            let before = settled(&map);
            gadget.answer(asked);
            assert!(grows_beyond(&map, before), "the answer adds nothing");
            let asked = gadget.asked();
            let (symbols, added) = (symbols(), since(&map, before));
            let is_soft = symbols.any_in("usb_api_blocking_completion", &added);
            let is_only = !symbols.any_in("hub_event", &added);
            assert!(is_soft || !is_only, "{added:x?}");
            gadget.answer(asked);
            gadget.set_up();
            assert!(hub_is_recorded(&map));
            is_only
        });
        assert!(shown, "a section of the driver ended each time");
    }),
    slow("remote.section.records-are-return-addresses", 30, |cx| {
        let blocks = sites().blocks();
        let (_device, map) = collecting_for(cx, &Remote::of(bus()));
        let gadget = Gadget::connect().expect("a device is connected");
        gadget.set_up();
        assert!(hub_is_recorded(&map), "{} records, none of the hub driver", map.count());
        let found = since(&map, 0);
        let soft = symbols().any_in("usb_api_blocking_completion", &found);
        assert!(soft, "no record of a softirq");
        let others: Vec<_> = found.iter().filter(|record| !blocks.contains(record)).collect();
        assert!(others.is_empty(), "behind no call of the hook: {others:#x?}, of {}", found.len());
    }),
    slow("remote.section.soft-interrupt-leaves-local-tracing", 30, |cx| {
        /// A count that the child's trace does not fall below.
        const KEPT: u64 = 1000;
        let (device, map) = mapped(cx);
        // The child keeps the processor busy, first traced and then not, so that
        // softirqs interrupt it.
        let (busy, own) = mapped(cx);
        let phase = own.words() - 1;
        let child: Child<()> = Child::start(|| {
            let end = Instant::now() + LONG;
            let during = |number, each: &dyn Fn()| {
                while own.load(phase) == number && Instant::now() < end {
                    each();
                    for step in 0..100_000_u32 {
                        std::hint::black_box(step);
                    }
                    // The parent does not wait for the end of a time slice.
                    std::thread::yield_now();
                }
            };
            busy.enable(KCOV_TRACE_PC).expect("enabled in the child");
            own.store(0, KEPT);
            let trace_is_kept = || assert!(own.count() >= KEPT, "the thread's trace is lost");
            during(0, &|| {
                trace_is_kept();
                own.store(0, KEPT);
                call();
                assert!(own.count() > KEPT, "the thread is not traced any longer");
            });
            trace_is_kept();
            busy.disable().expect("it is the thread's device still");
            own.reset();
            during(1, &|| {
                call();
                assert_eq!(own.count(), 0, "the thread is traced again");
            });
            busy.enable(KCOV_TRACE_PC).expect("the thread has no device");
        });
        let collected = |gadget: &Gadget| {
            let asked = gadget.asked();
            let before = settled(&map);
            gadget.answer(asked);
            assert!(grows_beyond(&map, before), "the answer adds nothing");
        };
        // First without remote collection, then with it.
        let gadget = Gadget::connect().expect("a device is connected");
        gadget.answer(gadget.asked());
        device.remote_enable(&Remote::of(bus())).expect("enabled");
        collected(&gadget);
        gadget.set_up();
        drop(gadget);
        let gadget = Gadget::connect().expect("a device is connected");
        collected(&gadget);
        own.store(phase, 1);
        gadget.set_up();
        own.store(phase, 2);
        child.end();
    }),
    slow("remote.section.handles-of-both-kinds-feed-one-buffer", 30, |cx| {
        let remote = Remote { common: common(), ..Remote::of_all([usb(1), bus(), usb(2)]) };
        let (_device, map) = collecting_for(cx, &remote);
        vhost().work();
        Gadget::connect().expect("a device is connected").set_up();
        assert!(hub_is_recorded(&map), "nothing of the bus");
        assert!(symbols().any_in("handle_tx_kick", &since(&map, 0)), "nothing of the worker");
    }),
    on_buffer("remote.section.common-handle-collects-local-work", enabled, |_, _device, map| {
        assert_eq!(map.count(), 0);
        // A worker that writes to a regular file.
        let file = memfd_create("file", MFdFlags::empty()).expect("a file");
        Ring::without_thread().expect("a ring").write_byte(&file);
        assert!(grows_beyond(&map, 0), "the ring's worker adds nothing");
        let count = settled(&map);
        ring().work();
        assert!(grows_beyond(&map, count), "the ring's thread adds nothing");
        assert!(map.load(1) >= 4096, "an address: {:#x}", map.load(1));
    }),
    on_buffer("remote.section.vhost-worker-is-collected", enabled, |_, _device, map| {
        let vhost = vhost();
        for owned in ["once", "again"] {
            map.reset();
            vhost.work();
            let records = since(&map, 0);
            assert!(symbols().any_in("handle_tx_kick", &records), "nothing of the worker: {owned}");
            vhost.own_again().expect("owned again");
        }
        let both = Vhost::of_both_queues().expect("a device that this process owns");
        map.reset();
        both.work();
        for handler in ["handle_rx_kick", "handle_tx_kick"] {
            let is_there = symbols().any_in(handler, &since(&map, 0));
            assert!(is_there, "of work that is queued at once, nothing of {handler}");
        }
    }),
    check("remote.section.vhost-owned-before-is-not-collected", |cx| {
        let early = vhost();
        let (_device, map) = enabled(cx);
        early.work();
        assert_eq!(settled(&map), 0);
        vhost().work();
        assert!(map.count() > 0, "the work of a device that is owned now is collected");
    }),
    on_buffer("remote.section.sections-append", enabled, |_, _device, map| {
        let vhost = vhost();
        vhost.work();
        let count = settled(&map);
        assert!(count > 0);
        let early = map.copy(1, index(count));
        vhost.work();
        assert!(map.count() > count, "a later section adds to it");
        assert_eq!(map.copy(1, index(count)), early, "behind the earlier ones");
        assert_ne!(map.load(1 + index(count)), 0);
    }),
    check("remote.section.records-are-those-of-the-mode", |cx| {
        let (device, map) = mapped_of(cx, 1 << 20);
        let remote = Remote { mode: KCOV_TRACE_CMP, ..Remote::common(common()) };
        device.remote_enable(&remote).expect("enabled");
        // Not a ring's thread: while kept awake, it polls, and its comparisons fill any buffer.
        let copies = Copies::new().expect("a ring");
        copies.give();
        let work = || {
            copies.begin();
            copies.complete();
        };
        work();
        assert!(grows_beyond(&map, 0), "a section adds to it");
        let early = map.copy(1, 4 * index(settled(&map)));
        work();
        assert!(grows_beyond(&map, early.len() as u64 / 4), "a later section adds to it");
        let count = index(settled(&map));
        assert!(count * 4 < map.words(), "{count}");
        assert_eq!(map.copy(1, early.len()), early, "behind the earlier ones");
        are_comparisons(&map.copy(1, count * 4));
    }),
    check("remote.section.work-begun-before-is-not-collected", |cx| {
        let early = ring();
        // Rings without threads share this process's workers.
        let file = memfd_create("file", MFdFlags::empty()).expect("a file");
        let working = Ring::without_thread().expect("a ring");
        working.write_byte(&file);
        let (_device, map) = enabled(cx);
        early.work();
        working.write_byte(&file);
        assert_eq!(settled(&map), 0);
        Ring::without_thread().expect("a ring").write_byte(&file);
        assert!(grows_beyond(&map, 0), "a worker's work that is begun now is collected");
        let count = settled(&map);
        ring().work();
        assert!(grows_beyond(&map, count), "work that is begun now is collected");
        // Another ring with the same thread.
        let ring = early.beside().expect("a ring");
        let nops = |ring: &Ring| {
            // The thread keeps polling for a while and may fill the buffer.
            let _ = settled(&map);
            map.reset();
            ring.work();
            let _ = settled(&map);
            symbols().any_in("io_nop", &since(&map, 0))
        };
        assert!(!nops(&early), "nothing of the earlier ring");
        assert!(nops(&ring), "something of the other ring");
    }),
    check("remote.section.refused-second-device-changes-nothing", |cx| {
        let (_device, map) = enabled(cx);
        let second = sized(cx, COVER_SIZE);
        assert!(second.remote_enable(&Remote::of(usb(1))).is_err(), "the thread is busy");
        vhost().work();
        assert!(map.count() > 0, "of work that is begun now");
    }),
    on_buffer("remote.section.disable-stops-it", enabled, |_, device, map| {
        let vhost = vhost();
        vhost.work();
        assert!(map.count() > 0);
        device.disable().expect("disabled");
        map.reset();
        vhost.work();
        assert_eq!(settled(&map), 0);
    }),
    check("remote.section.disable-forgets-common-handle", |cx| {
        // The smallest handle, so that a small value left behind would match.
        const HANDLE: u64 = 1;
        let (device, map) = collecting_for(cx, &Remote::common(HANDLE));
        device.disable().expect("disabled");
        has_no_handle(&device, &map, HANDLE);
    }),
    check("remote.section.disable-while-traced-forgets-common-handle", |cx| {
        let (device, map) = enabled(cx);
        let local = sized(cx, COVER_SIZE);
        local.enable(KCOV_TRACE_PC).expect("enabled");
        device.disable().expect("disabled");
        has_no_handle(&device, &map, common());
    }),
    on_buffer("remote.section.running-while-disabled-is-discarded", mapped, |_, device, map| {
        // The number of enablings must not be kept in a byte.
        for times in [1, 1 << 8] {
            is_discarded(&device, &map, &Remote::common(common()), times);
        }
    }),
    check("remote.section.comparisons-running-while-disabled-are-discarded", |cx| {
        let (device, map) = mapped(cx);
        let remote = Remote { mode: KCOV_TRACE_CMP, ..Remote::common(common()) };
        is_discarded(&device, &map, &remote, 1);
    }),
    on_buffer("remote.section.area-of-discarded-is-used-again", mapped, |_, device, map| {
        // No other check uses this size.
        let remote = Remote { area: 11 * 4096 + 512, ..Remote::common(common()) };
        let before = areas_of("kcov_remote_start");
        (0..4).for_each(|_| is_discarded(&device, &map, &remote, 1));
        let made = areas_of("kcov_remote_start") - before;
        // A section may begin when the one before has done its work and not ended yet.
        assert!((1..=2).contains(&made), "{made} areas");
    }),
    on_buffer("remote.section.collected-while-owner-is-traced", enabled, |cx, _device, map| {
        let (local, own) = mapped(cx);
        let vhost = vhost();
        for _ in 0..2 {
            local.enable(KCOV_TRACE_PC).expect("enabled locally");
            map.reset();
            vhost.work();
            assert!(grows_beyond(&map, 0), "the worker's sections are collected");
            assert!(own.count() > 0, "and the thread is traced");
            local.disable().expect("disabled");
        }
    }),
    slow("remote.section.global-task-running-while-disabled-is-discarded", 60, |cx| {
        let symbols = symbols();
        // The driver calls this when it finds a device, but not when it finds that one has gone.
        let found = |map: &Map| symbols.any_in("usb_alloc_dev", &since(map, 0));
        // The section may have many records before it finds the device.
        let remote = Remote { area: 1 << 18, ..Remote::of(bus()) };
        for again in [false, true] {
            let (device, map) = mapped_of(cx, 1 << 19);
            device.remote_enable(&remote).expect("enabled");
            let gadget = Gadget::connect().expect("a device is connected");
            let asked = gadget.asked();
            // The driver waits for the answer, in a section that has found the device.
            assert!(settled(&map) == 0 || !found(&map), "its section has not ended");
            if again {
                device.disable().expect("disabled");
                device.remote_enable(&remote).expect("enabled again");
            }
            map.reset();
            gadget.answer(asked);
            gadget.set_up();
            drop(gadget);
            assert!(hub_is_recorded(&map), "a section that began afterwards");
            if again {
                Gadget::finished();
                let _ = settled(&map);
                assert!(!found(&map), "the section of before is lost");
            } else {
                assert!(wait_for(LONG, || found(&map)), "the section that found the device");
            }
            device.disable().expect("disabled");
        }
    }),
    on_buffer("remote.section.other-processes-work-is-not-collected", mapped, |_, device, map| {
        // Forked before the handle is set, because the child would inherit it.
        let other: Child<()> = Child::start(|| {
            assert!(wait_for(LONG, || map.load(1) == 1), "the parent is enabled");
            vhost().work();
        });
        device.remote_enable(&Remote::common(common())).expect("enabled");
        map.store(1, 1);
        other.end();
        assert_eq!(settled(&map), 0);
    }),
    on_buffer("remote.section.forked-child-inherits-common-handle", enabled, |_, _device, map| {
        child(|| vhost().work());
        assert!(map.count() > 0);
    }),
    on_buffer("remote.section.full-buffer-stays-full", mapped_page, |_, device, map| {
        device.remote_enable(&Remote::common(common())).expect("enabled");
        let vhost = vhost();
        let full = map.words() as u64 - 1;
        for _ in 0..map.words() {
            if map.count() == full {
                break;
            }
            vhost.work();
        }
        assert_eq!(settled(&map), full);
        assert_ne!(map.load(map.words() - 1), 0, "the last word holds a record");
        let words = map.copy(0, map.words());
        vhost.work();
        assert_eq!(settled(&map), full);
        assert_eq!(map.copy(0, map.words()), words);
    }),
    on_buffer("remote.section.stored-count-beyond-capacity", mapped_page, |_, device, map| {
        device.remote_enable(&Remote::common(common())).expect("enabled");
        let vhost = vhost();
        let counts = [map.words() as u64, 1 << 31, 1 << 32, 1 << 61, u64::MAX];
        for count in counts.into_iter().filter(|count| fits(*count)) {
            mark_from(&map, count);
            vhost.work();
            assert_eq!(map.count(), count);
            assert!(is_marked_from(&map, 1), "{count:#x}");
        }
        map.reset();
        vhost.work();
        assert!(map.count() > 0, "a count in bounds is added to");
    }),
    check("remote.section.areas-are-used-again", |cx| {
        let instances = areas_of("kcov_ioctl");
        // No other check uses this size, so no other area fits.
        let remote = Remote { area: 3 * 4096 + 512, ..Remote::common(common()) };
        let (device, map) = collecting_for(cx, &remote);
        let vhost = vhost();
        vhost.work();
        assert!(settled(&map) > 0);
        let before = areas_of("kcov_remote_start");
        assert!(before > 0, "the first section has made one");
        for _ in 0..20 {
            vhost.work();
        }
        assert!(settled(&map) > 0);
        assert_eq!(areas_of("kcov_remote_start"), before);
        device.disable().expect("disabled");
        drop((device, map));
        // There are fewer if an earlier one was freed late.
        assert!(areas_of("kcov_ioctl") <= instances, "a section keeps no device");
    }),
    check("remote.section.areas-of-sections-at-once-are-used-again", |cx| {
        let remote = Remote { area: 5 * 4096 + 512, ..Remote::common(common()) };
        let (_device, map) = collecting_for(cx, &remote);
        let before = areas_of("kcov_remote_start");
        for _ in 0..4 {
            map.reset();
            let sections = [(); 2].map(|()| Copies::new().expect("a ring"));
            sections.iter().for_each(Copies::begin);
            // Lets both wait for their bytes. If one has not begun yet, this round shows less.
            std::thread::sleep(Duration::from_millis(20));
            for copies in sections {
                copies.give();
                copies.complete();
            }
            assert!(settled(&map) > 0);
        }
        let made = areas_of("kcov_remote_start") - before;
        assert!((1..=2).contains(&made), "{made} areas for two sections at once");
    }),
];
