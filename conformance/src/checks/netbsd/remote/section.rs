//! The kernel's work for a device that appears at a port.

use super::{attached, source_map};
use crate::check::{Context, checks};
use crate::raw::{Controller, KCOV_TRACE_CMP, KCOV_TRACE_PC, LONG, Map, settled, wait_for};
use std::time::Duration;

checks! {
    new_device_is_collected needs(Vhci) seconds(60),
    comparisons_are_collected needs(Vhci, Comparisons) seconds(60),
    not_enabled_collects_nothing needs(Vhci) seconds(60),
}

/// The port of [`super::PORT`].
const PORT: u32 = 1;

/// Makes a device appear. The kernel notices it after a while, and gives up because the device
/// never answers.
fn plug_in() -> Controller {
    let controller = Controller::open(PORT).expect("the controller opens");
    controller.plug_in().expect("a device appears");
    controller
}

fn collected(map: &Map) -> u64 {
    let _controller = plug_in();
    assert!(wait_for(LONG, || map.count() > 0), "nothing is collected");
    settled(map)
}

fn new_device_is_collected(cx: &Context) {
    let device = attached(cx);
    let map = source_map(&device);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    let count = collected(&map);
    let records = map.copy(1, usize::try_from(count).expect("a count"));
    let (least, greatest) = (records.iter().min(), records.iter().max());
    let (least, greatest) = (least.expect("a record"), greatest.expect("a record"));
    assert!(greatest - least < 1 << 30, "{least:#x} to {greatest:#x} is more than the kernel");
}

fn comparisons_are_collected(cx: &Context) {
    let device = attached(cx);
    let map = source_map(&device);
    device.enable(KCOV_TRACE_CMP).expect("enabled");
    map.reset();
    let count = usize::try_from(collected(&map)).expect("a count");
    let types = map.copy(1, 4 * count);
    assert!(types.chunks_exact(4).all(|record| record[0] < 8), "records of four words");
}

fn not_enabled_collects_nothing(cx: &Context) {
    let device = attached(cx);
    let map = source_map(&device);
    map.reset();
    let _controller = plug_in();
    let some = wait_for(Duration::from_secs(12), || map.count() > 0);
    assert!(!some, "{} records", map.count());
}
