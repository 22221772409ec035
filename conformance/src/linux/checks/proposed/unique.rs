//! Unique enable: "Coverage deduplication for KCOV".

use super::{COVER_SIZE, Seen, assert_once, call_repeatedly, calls, mapped, sized};
use crate::check::{Context, checks};
use crate::checks::shared::index;
use crate::raw::{Device, Gate, KCOV_TRACE_CMP, KCOV_TRACE_PC, Map, at_times, call, thread};
use crate::system::checks::calls::seek_nowhere;
use crate::system::checks::open;
use libc::{MAP_SHARED, PROT_READ};
use nix::fcntl::OFlag;

checks! {
    "proposed.unique.each-pc-once": each_pc_once,
    "proposed.unique.same-pcs-as-plain-mode": same_pcs_as_plain_mode,
    "proposed.unique.bitmap-comes-first": bitmap_comes_first,
    "proposed.unique.one-bit-per-record": one_bit_per_record,
    "proposed.unique.set-bit-is-not-recorded": set_bit_is_not_recorded,
    "proposed.unique.bit-stands-for-the-same-pc": bit_stands_for_the_same_pc,
    "proposed.unique.small-bitmap-lets-duplicates-through": small_bitmap_lets_duplicates_through,
    "proposed.unique.clearing-starts-over": clearing_starts_over,
    "proposed.unique.disabling-drops-the-bitmap": disabling_drops_the_bitmap,
    "proposed.unique.empty-bitmap-is-refused": empty_bitmap_is_refused,
    "proposed.unique.bitmap-leaves-room-for-a-record": bitmap_leaves_room_for_a_record,
    "proposed.unique.before-sizing-is-refused": before_sizing_is_refused,
    "proposed.unique.already-enabled-is-refused": already_enabled_is_refused,
    "proposed.unique.busy-if-thread-already-enabled": busy_if_thread_already_enabled,
    "proposed.unique.not-built-is-refused": not_built_is_refused,
    "proposed.unique.reset-empties-trace-and-bitmap": reset_empties_trace_and_bitmap,
    "proposed.unique.reset-empties-plain-traces": reset_empties_plain_traces,
    "proposed.unique.reset-empties-comparisons": reset_empties_comparisons,
    "proposed.unique.reset-with-read-only-mapping": reset_with_read_only_mapping,
    "proposed.unique.reset-leaves-its-own-tail": reset_leaves_its_own_tail,
    "proposed.unique.reset-argument-is-refused": reset_argument_is_refused,
    "proposed.unique.reset-if-not-enabled-is-refused": reset_if_not_enabled_is_refused,
    "proposed.unique.reset-by-other-thread-is-refused": reset_by_other_thread_is_refused,
}

/// Words of the bitmap: one bit for each block of any tested kernel.
const BITMAP: u64 = COVER_SIZE / 2;

/// Returns a device enabled with a bitmap of this many words.
fn enabled(cx: &Context, bitmap: u64) -> (Device, Map) {
    let (device, map) = mapped(cx);
    device.unique_enable(bitmap).expect("enabled");
    (device, map)
}

/// The records that follow a bitmap of this many words.
fn trace(map: &Map, bitmap: u64) -> Vec<u64> {
    let count = index(map.load(index(bitmap)));
    assert!(index(bitmap) + count < map.words(), "the trace has room");
    map.copy(index(bitmap) + 1, count)
}

fn bits(map: &Map, bitmap: u64) -> u32 {
    map.copy(0, index(bitmap)).into_iter().map(u64::count_ones).sum()
}

/// Zeroes the bitmap and the count.
fn clear(map: &Map, bitmap: u64) {
    (0..=index(bitmap)).for_each(|word| map.store(word, 0));
}

fn each_pc_once(cx: &Context) {
    let (_device, map) = enabled(cx, BITMAP);
    call_repeatedly(100);
    assert_once(&trace(&map, BITMAP));
}

fn same_pcs_as_plain_mode(cx: &Context) {
    let unique = || {
        let (device, map) = enabled(cx, BITMAP);
        clear(&map, BITMAP);
        calls();
        let records = trace(&map, BITMAP);
        device.disable().expect("disabled");
        records
    };
    Seen::in_runs(|| super::plain(cx)).assert_same(&Seen::in_runs(unique));
}

fn bitmap_comes_first(cx: &Context) {
    for bitmap in [1, 100, BITMAP, COVER_SIZE - 2] {
        let (device, map) = enabled(cx, bitmap);
        call();
        device.disable().expect("disabled");
        let count = index(map.load(index(bitmap)));
        assert!(count > 0, "{bitmap}: no count behind the bitmap");
        let behind = map.copy(index(bitmap) + 1, map.words() - 1 - index(bitmap));
        let written = behind.iter().take_while(|&&word| word != 0).count();
        assert_eq!(written, count, "{bitmap}: the records follow the count");
        assert!(behind[..count].iter().all(|&pc| pc >= 4096), "{bitmap}: program counters");
    }
}

fn one_bit_per_record(cx: &Context) {
    let (device, map) = enabled(cx, BITMAP);
    call();
    device.disable().expect("disabled");
    assert_eq!(bits(&map, BITMAP), u32::try_from(trace(&map, BITMAP).len()).expect("a count"));
    assert!(map.load(0) & 1 == 0, "number 0 is none");
}

fn set_bit_is_not_recorded(cx: &Context) {
    let (_device, map) = enabled(cx, BITMAP);
    (0..index(BITMAP)).for_each(|word| map.store(word, u64::MAX));
    map.store(index(BITMAP), 0);
    call();
    assert_eq!(map.load(index(BITMAP)), 0);
}

fn bit_stands_for_the_same_pc(cx: &Context) {
    let bitmap_of = |traced: fn()| {
        let (device, map) = enabled(cx, BITMAP);
        clear(&map, BITMAP);
        traced();
        device.disable().expect("disabled");
        let bits = (0..64 * BITMAP).filter(|bit| map.load(index(bit / 64)) >> (bit % 64) & 1 == 1);
        bits.collect::<Vec<_>>()
    };
    // A multi-threaded process runs through other blocks than a single-threaded one.
    let end = Gate::default();
    let (seen, other) = std::thread::scope(|scope| {
        let _open = end.open_at_end();
        scope.spawn(|| end.wait());
        let seen = Seen::in_runs(|| bitmap_of(calls));
        seen.assert_same(&Seen::in_runs(|| thread(|| bitmap_of(calls))));
        (seen, Seen::in_runs(|| bitmap_of(seek_nowhere)))
    });
    assert!(seen.always.difference(&other.ever).next().is_some(), "another call, other bits");
}

fn small_bitmap_lets_duplicates_through(cx: &Context) {
    // Blocks are numbered as they first run, so few blocks of these calls have a number below 64.
    let (_device, map) = enabled(cx, 1);
    call_repeatedly(10);
    let mut records = trace(&map, 1);
    let all = records.len();
    records.sort_unstable();
    records.dedup();
    assert!(records.len() < all, "{all} records, all of them distinct");
}

fn clearing_starts_over(cx: &Context) {
    let (_device, map) = enabled(cx, BITMAP);
    for _ in 0..3 {
        clear(&map, BITMAP);
        call();
        let first = trace(&map, BITMAP);
        assert_once(&first);
        // Resetting only the count does not clear the bitmap.
        let nothing = || {
            map.store(index(BITMAP), 0);
            call();
            map.load(index(BITMAP)) == 0
        };
        assert!(at_times(nothing), "recorded again without clearing the bitmap");
    }
}

fn disabling_drops_the_bitmap(cx: &Context) {
    let (device, map) = enabled(cx, BITMAP);
    device.disable().expect("disabled");
    clear(&map, BITMAP);
    device.enable(KCOV_TRACE_PC).expect("plain mode");
    call();
    device.disable().expect("disabled");
    assert!(map.count() > 0, "the count is word 0 again");
    assert_eq!(map.load(index(BITMAP)), 0);
    let records = map.copy(1, index(map.count()));
    assert!(records.iter().all(|&pc| pc >= 4096), "{records:x?}");
}

fn empty_bitmap_is_refused(cx: &Context) {
    cx.refused(sized(cx, COVER_SIZE).unique_enable(0));
}

fn bitmap_leaves_room_for_a_record(cx: &Context) {
    for bitmap in [COVER_SIZE - 1, COVER_SIZE, COVER_SIZE + 1, 1 << 32, u64::MAX] {
        cx.refused(sized(cx, COVER_SIZE).unique_enable(bitmap));
    }
    let (device, map) = mapped(cx);
    assert_eq!(device.unique_enable(COVER_SIZE - 2), Ok(()));
    call();
    assert_eq!(map.load(index(COVER_SIZE - 2)), 1, "one record, and it is full");
}

fn before_sizing_is_refused(cx: &Context) {
    cx.refused(open(cx).unique_enable(1));
}

fn already_enabled_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.unique_enable(1).expect("enabled");
    cx.refused(device.unique_enable(1));
    device.disable().expect("disabled");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused(device.unique_enable(1));
}

fn busy_if_thread_already_enabled(cx: &Context) {
    let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    first.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused(second.unique_enable(1));
    // The thread is checked before the argument.
    cx.refused(second.unique_enable(0));
    first.disable().expect("disabled");
    first.unique_enable(1).expect("enabled");
    cx.refused(second.unique_enable(1));
}

fn not_built_is_refused(cx: &Context) {
    // This is refused before anything else is checked.
    cx.refused(open(cx).unique_enable(0));
    let device = sized(cx, COVER_SIZE);
    cx.refused(device.unique_enable(1));
    device.enable(KCOV_TRACE_PC).expect("plain mode works");
    cx.refused(device.unique_enable(1));
}

fn reset_empties_trace_and_bitmap(cx: &Context) {
    let (device, map) = enabled(cx, BITMAP);
    call_repeatedly(10);
    let (records, set) = (trace(&map, BITMAP).len(), bits(&map, BITMAP));
    assert_eq!(device.reset_trace(), Ok(()));
    assert!(trace(&map, BITMAP).len() < records);
    assert!(bits(&map, BITMAP) < set);
    call();
    assert_once(&trace(&map, BITMAP));
    let fresh = trace(&map, BITMAP);
    assert!(fresh.len() > 5, "{} records of what was recorded before", fresh.len());
}

/// Resets a trace of many calls. The request itself records far less.
#[track_caller]
fn reset_empties(device: &Device, map: &Map) {
    for _ in 0..100 {
        call();
    }
    let before = map.count();
    assert_eq!(device.reset_trace(), Ok(()));
    assert!(map.count() < before / 2, "{} of {before}", map.count());
}

fn reset_empties_plain_traces(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    reset_empties(&device, &map);
    let after = map.count();
    call();
    assert!(map.count() > after && map.load(1) >= 4096, "and goes on");
}

fn reset_empties_comparisons(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_CMP).expect("enabled");
    reset_empties(&device, &map);
}

fn reset_with_read_only_mapping(cx: &Context) {
    let device = Device::open_with(cx.device(), OFlag::O_RDONLY).expect("the device opens");
    device.init_trace(COVER_SIZE).expect("sized");
    let map = device.map_with(index(COVER_SIZE) * 8, 0, PROT_READ, MAP_SHARED).expect("a mapping");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    reset_empties(&device, &map);
    let after = map.count();
    call();
    assert!(map.count() > after, "and goes on");
}

fn reset_leaves_its_own_tail(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert_eq!(device.reset_trace(), Ok(()));
    assert!(map.count() > 0);
}

fn reset_argument_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    for argument in [1, 2, u64::from(u32::MAX)] {
        cx.refused(device.reset_trace_with(argument));
    }
}

fn reset_if_not_enabled_is_refused(cx: &Context) {
    cx.refused(open(cx).reset_trace());
    let device = sized(cx, COVER_SIZE);
    cx.refused(device.reset_trace());
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.disable().expect("disabled");
    cx.refused(device.reset_trace());
}

fn reset_by_other_thread_is_refused(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    call();
    cx.refused(thread(|| device.reset_trace()));
    assert!(map.count() > 0);
    // The thread cannot reset its trace through another device either.
    cx.refused(sized(cx, COVER_SIZE).reset_trace());
}
