//! Soft interrupts in the middle of a thread, or of another section. The root hub completes a control
//! request in a softirq, usually during a system call of the thread that made the request.

use super::section::{bus, grows_beyond, since};
use super::*;

const TIMES: usize = 10;

fn hub() -> RootHub {
    RootHub::open().expect("the hub")
}

/// Panics unless the hub's work adds records.
#[track_caller]
fn is_collected(hub: &RootHub, map: &Map) {
    let before = settled(map);
    hub.work().expect("an answer");
    assert!(grows_beyond(map, before), "the softirq adds nothing");
}

/// Panics unless all records are comparisons.
#[track_caller]
fn are_comparisons(map: &Map) {
    let words = 4 * index(map.count());
    assert!((1..map.words()).contains(&words), "{words} words");
    setup::are_comparisons(&map.copy(1, words));
}

/// Lets softirqs interrupt sections of a task. The sections are collected into these buffers.
fn leaves_the_section(task: &Map, soft: &Map) {
    let ring = Ring::without_thread().expect("a ring");
    let zero = File::open("/dev/zero").expect("zeroes");
    let memory = Map::anonymous(1 << 20).expect("memory");
    let symbols = symbols();
    // Returns whether the worker was at work when the softirq came.
    let interrupts = |times| {
        let gadget = Gadget::connect().expect("a device is connected");
        let asked = gadget.asked();
        task.reset();
        soft.reset();
        let within = ring.fill(&zero, &memory, times, |done| {
            // This thread sleeps until the softirq has come, in the middle of the worker's read.
            gadget.answer(asked);
            assert!(grows_beyond(soft, 0), "the interrupt adds nothing");
            !done()
        });
        // The section has its records from the very start.
        for function in ["io_wq_submit_work", "read_iter_zero"] {
            let read = || symbols.any_in(function, &since(task, 0));
            assert!(wait_for(LONG, read), "nothing of {function}: {within}");
        }
        assert!(symbols.any_in("usb_api_blocking_completion", &since(soft, 0)));
        gadget.set_up();
        let hub = || symbols.any_in("hub_event", &since(soft, 0));
        assert!(wait_for(LONG, hub), "the hub driver's section ends");
        within
    };
    // On a busy host, the softirq may interrupt this thread instead of the worker. Four tries make it
    // unlikely that this happens every time.
    for _ in 0..4 {
        // If the read ended before the softirq came, try a longer one.
        let within = [64, 256, 1024].into_iter().any(interrupts);
        assert!(within, "the worker was never at work when the interrupt came");
    }
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("remote.soft.owners-own-is-collected", mapped, |_, device, map| {
        let hub = hub();
        RootHub::complete_here();
        device.remote_enable(&Remote::of(bus())).expect("enabled");
        (0..TIMES).for_each(|_| is_collected(&hub, &map));
    }),
    check("remote.soft.comparisons-are-collected", |cx| {
        let hub = hub();
        let remote = Remote { mode: KCOV_TRACE_CMP, ..Remote::of(bus()) };
        let (_device, map) = collecting_for(cx, &remote);
        for _ in 0..TIMES {
            map.reset();
            is_collected(&hub, &map);
            are_comparisons(&map);
        }
    }),
    check("remote.soft.leaves-the-mode", |cx| {
        let ((local, own), (other, soft)) = (mapped(cx), mapped(cx));
        let hub = hub();
        RootHub::complete_here();
        while_owned(&other, &Remote::of(bus()), || {
            local.enable(KCOV_TRACE_CMP).expect("enabled");
            for _ in 0..TIMES {
                is_collected(&hub, &soft);
                own.reset();
                call();
                are_comparisons(&own);
            }
        });
    }),
    check("remote.soft.keeps-its-areas", |cx| {
        // The default of CONFIG_KCOV_IRQ_AREA_SIZE.
        const IRQ_AREA_SIZE: u32 = 0x4_0000;
        let (device, map) = mapped(cx);
        let hub = hub();
        let remote = Remote { area: IRQ_AREA_SIZE, common: common(), ..Remote::of(bus()) };
        device.remote_enable(&remote).expect("enabled");
        is_collected(&hub, &map);
        let vhost = vhost();
        let before = settled(&map);
        (0..TIMES).for_each(|_| vhost.work());
        assert!(grows_beyond(&map, before), "the worker's sections are collected");
        is_collected(&hub, &map);
    }),
    check("remote.soft.area-size-is-its-own", |cx| {
        /// Room for one record.
        const LEAST: u32 = 2;
        let collected = |area| {
            // A device is enabled until its thread ends.
            thread(|| {
                let hub = hub();
                let remote = Remote { area, ..Remote::of(bus()) };
                let (_device, map) = collecting_for(cx, &remote);
                (0..TIMES).for_each(|_| is_collected(&hub, &map));
                settled(&map)
            })
        };
        let (least, usual) = (collected(LEAST), collected(1 << 12));
        assert!(least > usual / 2, "{least} records with areas of {LEAST} words, usually {usual}");
    }),
    slow("remote.nested.soft-interrupt-leaves-the-section", 60, |cx| {
        let remote = Remote { common: common(), ..Remote::of(bus()) };
        let (_device, map) = collecting_for(cx, &remote);
        leaves_the_section(&map, &map);
    }),
    slow("remote.nested.other-devices-soft-interrupt-leaves-the-section", 60, |cx| {
        let ((device, task), (other, soft)) = (mapped(cx), mapped(cx));
        let remote = Remote::common(common());
        // Each disable increments the device's sequence number, so the two devices' numbers differ.
        device.remote_enable(&remote).expect("enabled");
        device.disable().expect("disabled");
        while_owned(&other, &Remote::of(bus()), || {
            device.remote_enable(&remote).expect("enabled");
            leaves_the_section(&task, &soft);
        });
    }),
];
