//! Unique enable: "Coverage deduplication for KCOV".

use super::*;

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

fn clear(map: &Map, bitmap: u64) {
    (0..=index(bitmap)).for_each(|word| map.store(word, 0));
}

/// Resets a trace of many calls. The request itself records far less.
#[track_caller]
fn reset_empties(device: &Device, map: &Map) {
    (0..100).for_each(|_| call());
    let before = map.count();
    assert_eq!(device.reset_trace(), Ok(()));
    assert!(map.count() < before / 2, "{} of {before}", map.count());
}

pub(crate) const CHECKS: &[Check] = &[
    check("proposed.unique.each-pc-once", |cx| {
        let (_device, map) = enabled(cx, BITMAP);
        call_repeatedly(100);
        assert_once(&trace(&map, BITMAP));
    }),
    check("proposed.unique.same-pcs-as-plain-mode", |cx| {
        let unique = || {
            let (device, map) = enabled(cx, BITMAP);
            clear(&map, BITMAP);
            calls();
            let records = trace(&map, BITMAP);
            device.disable().expect("disabled");
            records
        };
        Seen::in_runs(|| super::plain(cx)).assert_same(&Seen::in_runs(unique));
    }),
    check("proposed.unique.bitmap-comes-first", |cx| {
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
    }),
    check("proposed.unique.one-bit-per-record", |cx| {
        let (device, map) = enabled(cx, BITMAP);
        call();
        device.disable().expect("disabled");
        assert_eq!(bits(&map, BITMAP), u32::try_from(trace(&map, BITMAP).len()).expect("a count"));
        assert!(map.load(0) & 1 == 0, "number 0 is none");
    }),
    check("proposed.unique.set-bit-is-not-recorded", |cx| {
        let (_device, map) = enabled(cx, BITMAP);
        (0..index(BITMAP)).for_each(|word| map.store(word, u64::MAX));
        map.store(index(BITMAP), 0);
        call();
        assert_eq!(map.load(index(BITMAP)), 0);
    }),
    check("proposed.unique.bit-stands-for-the-same-pc", |cx| {
        let bitmap_of = |traced: fn()| {
            let (device, map) = enabled(cx, BITMAP);
            clear(&map, BITMAP);
            traced();
            device.disable().expect("disabled");
            let bits =
                (0..64 * BITMAP).filter(|bit| map.load(index(bit / 64)) >> (bit % 64) & 1 == 1);
            bits.collect::<Vec<_>>()
        };
        // A multi-threaded process runs through other blocks than a single-threaded one.
        let look = || {
            let seen = Seen::in_runs(|| bitmap_of(calls));
            seen.assert_same(&Seen::in_runs(|| thread(|| bitmap_of(calls))));
            (seen, Seen::in_runs(|| bitmap_of(seek_nowhere)))
        };
        let ((seen, other), ()) = beside_other(|| Ok(()), look, || ());
        assert!(seen.always.difference(&other.ever).next().is_some(), "another call, other bits");
    }),
    check("proposed.unique.small-bitmap-lets-duplicates-through", |cx| {
        // Blocks are numbered as they first run, so few blocks of these calls have a
        // number below 64.
        let (_device, map) = enabled(cx, 1);
        call_repeatedly(10);
        let records = trace(&map, 1);
        let (distinct, all) = (records.iter().collect::<BTreeSet<_>>().len(), records.len());
        assert!(distinct < all, "{all} records, all of them distinct");
    }),
    check("proposed.unique.clearing-starts-over", |cx| {
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
    }),
    check("proposed.unique.disabling-drops-the-bitmap", |cx| {
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
    }),
    check("proposed.unique.empty-bitmap-is-refused", |cx| {
        cx.refused(sized(cx, COVER_SIZE).unique_enable(0));
    }),
    check("proposed.unique.bitmap-leaves-room-for-a-record", |cx| {
        for bitmap in [COVER_SIZE - 1, COVER_SIZE, COVER_SIZE + 1, 1 << 32, u64::MAX] {
            cx.refused(sized(cx, COVER_SIZE).unique_enable(bitmap));
        }
        let (device, map) = mapped(cx);
        assert_eq!(device.unique_enable(COVER_SIZE - 2), Ok(()));
        call();
        assert_eq!(map.load(index(COVER_SIZE - 2)), 1, "one record, and it is full");
    }),
    check("proposed.unique.before-sizing-is-refused", |cx| cx.refused(open(cx).unique_enable(1))),
    on_device("proposed.unique.already-enabled-is-refused", usual, |cx, device| {
        device.unique_enable(1).expect("enabled");
        cx.refused(device.unique_enable(1));
        device.disable().expect("disabled");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused(device.unique_enable(1));
    }),
    check("proposed.unique.busy-if-thread-already-enabled", |cx| {
        let (first, second) = (super::enabled(cx, KCOV_TRACE_PC), sized(cx, COVER_SIZE));
        cx.refused(second.unique_enable(1));
        // The thread is checked before the argument.
        cx.refused(second.unique_enable(0));
        first.disable().expect("disabled");
        first.unique_enable(1).expect("enabled");
        cx.refused(second.unique_enable(1));
    }),
    check("proposed.unique.not-built-is-refused", |cx| {
        // This is refused before anything else is checked.
        cx.refused(open(cx).unique_enable(0));
        let device = sized(cx, COVER_SIZE);
        cx.refused(device.unique_enable(1));
        device.enable(KCOV_TRACE_PC).expect("plain mode works");
        cx.refused(device.unique_enable(1));
    }),
    check("proposed.unique.reset-empties-trace-and-bitmap", |cx| {
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
    }),
    on_buffer("proposed.unique.reset-empties-plain-traces", collecting_pc, |_, device, map| {
        reset_empties(&device, &map);
        let after = map.count();
        call();
        assert!(map.count() > after && map.load(1) >= 4096, "and goes on");
    }),
    on_buffer("proposed.unique.reset-empties-comparisons", collecting_cmp, |_, device, map| {
        reset_empties(&device, &map);
    }),
    check("proposed.unique.reset-with-read-only-mapping", |cx| {
        let device = sized_with(cx, OFlag::O_RDONLY, COVER_SIZE);
        let map =
            device.map_with(index(COVER_SIZE) * 8, 0, PROT_READ, MAP_SHARED).expect("a mapping");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        reset_empties(&device, &map);
        let after = map.count();
        call();
        assert!(map.count() > after, "and goes on");
    }),
    on_buffer("proposed.unique.reset-leaves-its-own-tail", collecting_pc, |_, device, map| {
        assert_eq!(device.reset_trace(), Ok(()));
        assert!(map.count() > 0);
    }),
    check("proposed.unique.reset-argument-is-refused", |cx| {
        let device = super::enabled(cx, KCOV_TRACE_PC);
        for argument in [1, 2, u64::from(u32::MAX)] {
            cx.refused(device.reset_trace_with(argument));
        }
    }),
    check("proposed.unique.reset-if-not-enabled-is-refused", |cx| {
        cx.refused(open(cx).reset_trace());
        let device = sized(cx, COVER_SIZE);
        cx.refused(device.reset_trace());
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.disable().expect("disabled");
        cx.refused(device.reset_trace());
    }),
    check("proposed.unique.reset-by-other-thread-is-refused", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        call();
        cx.refused(thread(|| device.reset_trace()));
        assert!(map.count() > 0);
        // The thread cannot reset its trace through another device either.
        cx.refused(sized(cx, COVER_SIZE).reset_trace());
    }),
];
