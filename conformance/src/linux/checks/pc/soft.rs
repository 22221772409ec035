//! Softirqs in the middle of a traced call.

use super::place::in_none_of;
use crate::check::{Context, checks};
use crate::checks::shared::pc::records;
use crate::raw::{KCOV_TRACE_PC, Loopback, symbols};
use crate::system::checks::mapped;

checks! {
    "pc.soft.interrupts-add-nothing": interrupts_add_nothing,
}

/// Functions that deliver a datagram.
pub(in super::super) const DELIVERY: &[&str] = &["ip_rcv", "process_backlog", "udp_rcv"];

fn interrupts_add_nothing(cx: &Context) {
    let loopback = Loopback::up();
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let records = records(&map, || (0..20).for_each(|_| loopback.turn()));
    device.disable().expect("disabled");
    assert!(symbols().any_in("udp_sendmsg", &records), "what sends is the thread's own");
    in_none_of(DELIVERY, &records);
}
