//! Nested sections: a softirq's in the middle of a task's.

use super::common;
use super::section::{bus, grows_beyond, since};
use super::while_owned;
use crate::check::{Context, checks};
use crate::raw::{Gadget, LONG, Map, Remote, Ring, symbols, wait_for};
use crate::system::checks::mapped;
use libc::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use std::fs::File;

checks! {
    "remote.nested.soft-interrupt-leaves-the-section":
        soft_interrupt_leaves_the_section seconds(60),
    "remote.nested.other-devices-soft-interrupt-leaves-the-section":
        other_devices_soft_interrupt_leaves_the_section seconds(60),
}

fn soft_interrupt_leaves_the_section(cx: &Context) {
    let (device, map) = mapped(cx);
    let remote = Remote { handles: vec![bus()], ..Remote::common(common()) };
    device.remote_enable(&remote).expect("enabled");
    leaves_the_section(&map, &map);
}

fn other_devices_soft_interrupt_leaves_the_section(cx: &Context) {
    let ((device, task), (other, soft)) = (mapped(cx), mapped(cx));
    let remote = Remote::common(common());
    // Each disable increments the device's sequence number, so the two devices' numbers differ.
    device.remote_enable(&remote).expect("enabled");
    device.disable().expect("disabled");
    while_owned(&other, &Remote::of(bus()), || {
        device.remote_enable(&remote).expect("enabled");
        leaves_the_section(&task, &soft);
    });
}

/// Lets a softirq interrupt a section of a task. The sections are collected into these buffers.
fn leaves_the_section(task: &Map, soft: &Map) {
    let ring = Ring::without_thread().expect("a ring");
    let zero = File::open("/dev/zero").expect("zeroes");
    let (prot, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    let memory = Map::new(&-1, 1 << 20, 0, prot, flags).expect("memory");
    let symbols = symbols();
    // Repeats with a longer read if the read was already over when the softirq came.
    let within = [64, 256, 1024].into_iter().any(|times| {
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
    });
    assert!(within, "the worker was never at work when the interrupt came");
}
