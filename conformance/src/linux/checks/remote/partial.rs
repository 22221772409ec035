//! Sections whose records do not all fit in the device's buffer.

use super::*;

/// How many pairs of sections are compared at most.
const SECTIONS: usize = 16;

// On several processors, one kick may run several sections.
/// A buffer into which a kernel thread's sections are collected in one mode.
struct Collects {
    mode: u32,
    map: Map,
    work: Box<dyn Fn()>,
}

impl Collects {
    fn begin(cx: &Context, mode: u32) -> Collects {
        let remote = Remote { mode, ..Remote::common(common()) };
        Collects::with(cx, remote, || if mode == KCOV_TRACE_CMP { copying() } else { kicking() })
    }

    fn with(cx: &Context, remote: Remote, work: impl Fn() -> Box<dyn Fn()>) -> Collects {
        let mode = remote.mode;
        let (device, map) = collecting_for(cx, &remote);
        let work = work();
        // The device stays enabled without a file descriptor, as long as this thread lives.
        device.close().expect("closed");
        Collects { mode, map, work }
    }

    fn words_of_record(&self) -> usize {
        if self.mode == KCOV_TRACE_CMP { 4 } else { 1 }
    }

    fn capacity(&self) -> usize {
        self.capacity_of(self.map.words())
    }

    /// The number of records in so many words.
    fn capacity_of(&self, words: usize) -> usize {
        (words - 1) / self.words_of_record()
    }

    /// The words of `number` records, starting with record `first`.
    fn records(&self, first: usize, number: usize) -> Vec<u64> {
        let words = self.words_of_record();
        self.map.copy(1 + first * words, number * words)
    }

    /// Whether every word after the first `count` records still has its mark.
    fn is_marked_after(&self, count: usize) -> bool {
        let first = 1 + count * self.words_of_record();
        self.map.copy(first, self.map.words() - first).iter().all(is_sentinel)
    }

    /// Stores a count, marks all other words, and makes the worker run. Returns the resulting
    /// count.
    fn work_behind(&self, count: usize) -> usize {
        mark_from(&self.map, count as u64);
        (self.work)();
        // The section may end after its work is done. All of its records appear at once.
        let grows = || self.map.count() != count as u64;
        if count >= self.capacity() || !wait_for(LONG, grows) {
            return index(settled(&self.map));
        }
        // Another section may end meanwhile. In a full buffer, a part of a comparison may follow
        // the last whole one.
        let is_full = || index(self.map.count()) == self.capacity();
        let others_are_kept = || is_full() || self.is_marked_after(index(self.map.count()));
        assert!(wait_for(LONG, others_are_kept), "words after the records were changed");
        index(self.map.count())
    }
}

/// Work of a vhost device, which compares nothing.
fn kicking() -> Box<dyn Fn()> {
    let vhost = vhost();
    Box::new(move || vhost.work())
}

/// Work of a ring's worker.
fn copying() -> Box<dyn Fn()> {
    let copies = Copies::new().expect("a ring");
    copies.give();
    Box::new(move || {
        copies.begin();
        copies.complete();
    })
}

/// Work of a ring's worker that has several records for each of 4096 pages.
fn reading() -> Box<dyn Fn()> {
    let ring = Ring::without_thread().expect("a ring");
    let zero = File::open("/dev/zero").expect("zeroes");
    let memory = Map::anonymous(4 * page_size()).expect("memory");
    Box::new(move || ring.fill(&zero, &memory, 1024, |_| ()))
}

fn first_come_over(cx: &Context, mode: u32) {
    let collects = Collects::begin(cx, mode);
    for room in 1..8 {
        let before = collects.capacity() - room;
        let (mut complete, mut cut, mut is_short) = (Vec::new(), Vec::new(), false);
        // Two sections may differ, such as by a wait for a lock.
        let agrees = (0..SECTIONS).any(|_| {
            let all = collects.work_behind(0);
            is_short |= all <= room;
            complete = collects.records(0, all.min(room));
            let count = collects.work_behind(before);
            assert!(collects.records(0, before).iter().all(is_sentinel), "before them");
            cut = collects.records(before, count.saturating_sub(before).min(room));
            all > room && count == collects.capacity() && cut == complete
        });
        // Every section has at least four records, but not every one has more.
        let is_optional = is_short && room > 3;
        assert!(agrees || is_optional, "room for {room}: {cut:x?}, complete: {complete:x?}");
    }
}

fn full_stays(cx: &Context, mode: u32) {
    let collects = Collects::begin(cx, mode);
    assert!(collects.work_behind(0) > 0, "sections have records");
    for _ in 0..3 {
        let full = collects.capacity();
        assert_eq!(collects.work_behind(full), full);
        // Words after the last whole record belong to no record.
        assert!(collects.records(0, full).iter().all(is_sentinel));
    }
    assert!(collects.work_behind(0) > 0, "a buffer with room is added to");
}

/// A section collects as many records as its area has room for.
fn area_is_filled(cx: &Context, mode: u32) {
    // Comparisons have wider words than some kernels.
    let width = if mode == KCOV_TRACE_CMP { 8 } else { word_bytes() };
    // A section uses no area of another size that an earlier section left: larger ones first, then
    // smaller ones.
    let small = (11..18).rev().chain(5..11);
    let small = small.map(|words| (words, copying as fn() -> Box<dyn Fn()>));
    // More than a page.
    let large = (2 * index(page_words()), reading as fn() -> Box<dyn Fn()>);
    for (words, work) in small.chain([large]) {
        let area = (words * width / word_bytes()) as u32;
        // A device is enabled until its thread ends.
        thread(|| {
            let remote = Remote { mode, area, ..Remote::common(common()) };
            let collects = Collects::with(cx, remote, work);
            let room = collects.capacity_of(words);
            assert_eq!(collects.work_behind(0), room, "an area of {area} words");
        });
    }
}

pub(crate) const CHECKS: &[Check] = &[
    check("remote.partial.first-records-come-over", |cx| first_come_over(cx, KCOV_TRACE_PC)),
    check("remote.partial.first-comparisons-come-over", |cx| first_come_over(cx, KCOV_TRACE_CMP)),
    check("remote.partial.full-buffer-gets-nothing", |cx| full_stays(cx, KCOV_TRACE_PC)),
    check("remote.partial.exact-fit-comes-over", |cx| {
        let collects = Collects::begin(cx, KCOV_TRACE_PC);
        let mut counts = Vec::new();
        // Two sections may differ, such as by a wait for a lock.
        let agrees = (0..SECTIONS).any(|_| {
            let room = collects.work_behind(0);
            let complete = collects.records(0, room);
            let before = collects.capacity() - room;
            let count = collects.work_behind(before);
            counts.push((room, count - before));
            count == collects.capacity() && collects.records(before, room) == complete
        });
        assert!(agrees, "room and records: {counts:?}");
    }),
    check("remote.partial.full-buffer-gets-no-comparison", |cx| full_stays(cx, KCOV_TRACE_CMP)),
    check("remote.partial.area-of-records-is-filled", |cx| area_is_filled(cx, KCOV_TRACE_PC)),
    check("remote.partial.area-of-comparisons-is-filled", |cx| area_is_filled(cx, KCOV_TRACE_CMP)),
    check("remote.section.zero-area", |cx| {
        // With another area, the same work is collected.
        for area in [512, 0] {
            let count = thread(|| {
                let remote = Remote { area, ..Remote::common(common()) };
                let collects = Collects::with(cx, remote, copying);
                // The kernel's warning looks like a fault.
                with_console_off(collects.work);
                let is_collected = area > 0 && wait_for(LONG, || collects.map.count() > 0);
                if is_collected { collects.map.count() } else { settled(&collects.map) }
            });
            assert_eq!(count > 0, area > 0, "{count} records with an area of {area} words");
        }
    }),
];
