//! Interrupts while comparisons are traced.

use super::super::pc::place::{in_no_tick, in_none_of, spin};
use super::super::pc::soft::DELIVERY;
use crate::check::{Context, checks};
use crate::checks::shared::cmp::{Comparison, collect};
use crate::raw::{Loopback, symbols};

checks! {
    "cmp.soft.ticks-add-nothing": ticks_add_nothing,
    "cmp.soft.interrupts-add-nothing": interrupts_add_nothing,
}

fn addresses(comparisons: &[Comparison]) -> Vec<u64> {
    comparisons.iter().map(|comparison| comparison.address).collect()
}

fn ticks_add_nothing(cx: &Context) {
    in_no_tick(|| addresses(&collect(cx, spin)));
}

fn interrupts_add_nothing(cx: &Context) {
    let loopback = Loopback::up();
    let found = collect(cx, || (0..20).for_each(|_| loopback.turn()));
    let addresses = addresses(&found);
    assert!(symbols().any_in("udp_sendmsg", &addresses), "what sends is the thread's own");
    in_none_of(DELIVERY, &addresses);
}
