//! Truncation of the file. All instances share its inode, so it affects every mapping on the
//! machine. Nothing that reads a buffer may run at the same time as these checks.

use super::remote::{enabled, vhost};
use super::*;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::stat::fstat;
use nix::unistd::truncate;
use std::borrow::Borrow;

/// Pages of a buffer in these checks.
const PAGES: usize = 4;
/// The results of accessing the pages of a whole mapping.
const WHOLE: [Option<Signal>; PAGES] = [None; PAGES];
/// The results when the pages are gone.
const GONE: [Option<Signal>; PAGES] = [Some(Signal::SIGBUS); PAGES];

/// The last word of a page.
fn last(page: usize) -> usize {
    (page + 1) * index(page_words()) - 1
}

/// Returns a device with a mapped buffer. The last word of each page is its number plus one.
fn numbered(cx: &Context) -> (Device, Map) {
    let (device, map) = mapped_of(cx, PAGES as u64 * page_words());
    for page in 0..PAGES {
        map.store(last(page), 1 + page as u64);
    }
    (device, map)
}

/// The signal that ends a child which loads this word, if any.
pub(super) fn fault(map: &Map, word: usize) -> Option<Signal> {
    Child::start(|| map.load(word)).outcome().err()
}

/// The same for the last word of each page.
fn faults(map: &Map) -> [Option<Signal>; PAGES] {
    std::array::from_fn(|page| fault(map, last(page)))
}

/// Panics unless a new mapping shows everything that was stored, and the device can be enabled.
#[track_caller]
fn is_whole(device: &Device) {
    let map = device.map(PAGES as u64 * page_words()).expect("a new mapping");
    let numbers: Vec<u64> = (0..PAGES).map(|page| map.load(last(page))).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "what was stored");
    collects(device, &map);
}

/// Panics unless the device can be enabled, records calls, and can be disabled.
#[track_caller]
pub(super) fn collects(device: &Device, map: &Map) {
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    assert!(is_traced(map), "a call is recorded");
    assert_eq!(device.disable(), Ok(()));
}

fn size(device: &Device) -> usize {
    usize::try_from(fstat(device).expect("fstat").st_size).expect("a size")
}

/// Starts a child that loads a word of its mapping before and after `meanwhile`, which runs here.
/// Returns what becomes of the child.
fn loads_around<M: Borrow<Map>>(
    own: impl FnOnce() -> M,
    meanwhile: impl FnOnce(),
) -> Result<(), Signal> {
    let ((ready, is_ready), (go, goes)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
    let loads = Child::start(|| {
        let own = own();
        let map: &Map = own.borrow();
        assert_eq!(map.load(last(0)), 1);
        assert_eq!(write(&is_ready, b"!"), Ok(1));
        assert_eq!(read(&go, &mut [0]), Ok(1));
        _ = map.load(last(0));
    });
    // Otherwise the read below would never end if the child failed.
    drop(is_ready);
    assert_eq!(read(&ready, &mut [0]), Ok(1), "the child has loaded it once");
    meanwhile();
    assert_eq!(write(&goes, b"!"), Ok(1));
    loads.outcome()
}

pub(crate) const CHECKS: &[Check] = &[
    check("truncate.takes-the-pages-away", |cx| {
        let accesses: [fn(&Map); 2] = [|map| _ = map.load(last(0)), |map| map.store(last(0), 1)];
        for access in accesses {
            let (device, map) = numbered(cx);
            // The same process truncates and accesses.
            let ends = |truncates: bool| {
                let process = Child::start(|| {
                    access(&map);
                    let done = if truncates { device.truncate(0) } else { Ok(()) };
                    assert_eq!(done, Ok(()));
                    access(&map);
                });
                process.outcome()
            };
            assert_eq!(ends(false), Ok(()));
            assert_eq!(ends(true), Err(Signal::SIGBUS));
            assert_eq!(faults(&map), GONE);
            is_whole(&device);
        }
    }),
    on_buffer("truncate.system-calls-are-refused", numbered, |cx, device, map| {
        let (from, to) = pipe().expect("a pipe");
        let (word, whole) = (word_bytes(), word_bytes() as _);
        // SAFETY: the kernel reads one word of the mapping, or returns an error.
        let reads = || Errno::check(unsafe { libc::write(to.as_raw_fd(), map.address(), word) });
        // SAFETY: the kernel writes one word of the mapping, or returns an error.
        // Nothing else accesses the word meanwhile.
        let writes = || Errno::check(unsafe { libc::read(from.as_raw_fd(), map.address(), word) });
        assert_eq!((reads(), writes()), (Ok(whole), Ok(whole)));
        device.truncate(0).expect("truncated");
        cx.refused(reads());
        assert_eq!(write(&to, &[0; 8]), Ok(8));
        cx.refused(writes());
        is_whole(&device);
    }),
    check("truncate.reaches-other-instances", |cx| {
        let ((device, map), (other, others)) = (numbered(cx), numbered(cx));
        assert_eq!((faults(&map), faults(&others)), (WHOLE, WHOLE));
        device.truncate(0).expect("truncated");
        assert_eq!((faults(&map), faults(&others)), (GONE, GONE));
        is_whole(&device);
        is_whole(&other);
    }),
    on_buffer("truncate.reaches-other-processes", numbered, |cx, device, map| {
        let truncate = || device.truncate(0).expect("truncated");
        let own = || numbered(cx).1;
        assert_eq!(loads_around(own, || ()), Ok(()));
        assert_eq!(loads_around(own, truncate), Err(Signal::SIGBUS), "with an instance of its own");
        let inherited = device.map(PAGES as u64 * page_words()).expect("a new mapping");
        assert_eq!(loads_around(|| &inherited, || ()), Ok(()));
        assert_eq!(loads_around(|| &inherited, truncate), Err(Signal::SIGBUS), "with the parent's");
        assert_eq!(fault(&map, 0), Some(Signal::SIGBUS), "forked afterwards");
        is_whole(&device);
    }),
    on_buffer("truncate.by-path", numbered, |cx, device, map| {
        assert_eq!(faults(&map), WHOLE);
        assert_eq!(truncate(cx.device(), 0), Ok(()));
        assert_eq!(faults(&map), GONE);
        is_whole(&device);
    }),
    check("truncate.by-opening", |cx| {
        let opened = |flags| Device::open_with(cx.device(), flags).map(drop);
        for access in [OFlag::O_RDWR, OFlag::O_RDONLY, OFlag::O_WRONLY | OFlag::O_CREAT] {
            for other_process in [false, true] {
                let by =
                    |flags| if other_process { child(|| opened(flags)) } else { opened(flags) };
                let (device, map) = numbered(cx);
                assert_eq!(by(access), Ok(()));
                assert_eq!(faults(&map), WHOLE, "{access:?}");
                assert_eq!(by(access | OFlag::O_TRUNC), Ok(()));
                assert_eq!(faults(&map), GONE, "{access:?}");
                is_whole(&device);
            }
        }
    }),
    on_buffer("truncate.holder-of-a-descriptor-needs-no-privilege", numbered, |cx, device, map| {
        assert_eq!(faults(&map), WHOLE);
        let (opened, truncated) = child(|| {
            setuid(Uid::from_raw(65534)).expect("setuid");
            (Device::open(cx.device()).map(drop), device.truncate(0))
        });
        assert_eq!(opened, Err(Errno(libc::EACCES)), "it has no privilege");
        assert_eq!(truncated, Ok(()));
        assert_eq!(faults(&map), GONE);
        is_whole(&device);
    }),
    on_buffer("truncate.read-only-descriptor-is-refused", numbered, |cx, device, map| {
        let with = |access| Device::open_with(cx.device(), access).expect("the device opens");
        cx.refused(with(OFlag::O_RDONLY).truncate(0));
        cx.refused(with(OFlag::O_RDONLY).truncate(page_size()));
        assert_eq!((faults(&map), size(&device)), (WHOLE, 0));
        assert_eq!(with(OFlag::O_WRONLY).truncate(0), Ok(()));
        assert_eq!(faults(&map), GONE);
        is_whole(&device);
    }),
    on_buffer("truncate.allocation-is-refused", numbered, |cx, device, map| {
        let keep = FallocateFlags::FALLOC_FL_KEEP_SIZE;
        for mode in [
            FallocateFlags::empty(),
            keep,
            keep | FallocateFlags::FALLOC_FL_PUNCH_HOLE,
            FallocateFlags::FALLOC_FL_ZERO_RANGE,
            FallocateFlags::FALLOC_FL_COLLAPSE_RANGE,
            FallocateFlags::FALLOC_FL_INSERT_RANGE,
        ] {
            let length = libc::off_t::try_from(page_size()).expect("a length");
            cx.refused(fallocate(&device, mode, 0, length).map_err(Errno::from));
        }
        assert_eq!((faults(&map), size(&device)), (WHOLE, 0));
        is_whole(&device);
    }),
    check("truncate.smaller-keeps-what-is-before-its-end", |cx| {
        let page = page_size();
        for (bytes, kept) in [(1, 1), (page, 1), (page + 1, 2), (3 * page, 3), (3 * page + 1, 4)] {
            let (device, map) = numbered(cx);
            assert_eq!(device.truncate(bytes), Ok(()));
            let mut expected = GONE;
            expected[..kept].fill(None);
            assert_eq!(faults(&map), expected, "{bytes} bytes");
            is_whole(&device);
            device.truncate(0).expect("truncated");
        }
    }),
    on_buffer("truncate.larger-takes-nothing", numbered, |_, device, map| {
        for bytes in [map.bytes(), map.bytes() + 1, 1 << 30] {
            assert_eq!(device.truncate(bytes), Ok(()));
            assert_eq!(faults(&map), WHOLE, "{bytes} bytes");
        }
        device.truncate(0).expect("truncated");
        assert_eq!(faults(&map), GONE);
        is_whole(&device);
    }),
    on_buffer("truncate.size-says-nothing-of-the-buffer", numbered, |cx, device, map| {
        let other = open(cx);
        assert_eq!(size(&device), 0, "although it has a buffer");
        for bytes in [page_size(), map.bytes()] {
            assert_eq!(device.truncate(bytes), Ok(()));
            assert_eq!((size(&device), size(&other)), (bytes, bytes), "there is one size");
            let whole =
                device.map(PAGES as u64 * page_words()).expect("a mapping beyond that size");
            assert_eq!(faults(&whole), WHOLE);
            assert_eq!(faults(&map)[1..], GONE[1..], "no page comes back");
        }
        is_whole(&device);
        assert_eq!(device.truncate(0), Ok(()));
        assert_eq!(size(&other), 0);
    }),
    on_buffer("truncate.before-mapping-takes-nothing", numbered, |cx, _mapped, gone| {
        let device = open(cx);
        assert_eq!(device.truncate(0), Ok(()));
        assert_eq!(faults(&gone), GONE);
        device.init_trace(PAGES as u64 * page_words()).expect("sized");
        assert_eq!(device.truncate(0), Ok(()));
        let map = device.map(PAGES as u64 * page_words()).expect("mapped");
        assert_eq!(faults(&map), WHOLE);
        collects(&device, &map);
    }),
    on_buffer("truncate.private-copies-are-lost", numbered, |_, device, map| {
        let private =
            || device.map_with(map.bytes(), 0, READ_WRITE, MAP_PRIVATE).expect("a private mapping");
        let copies = private();
        copies.store(last(1), 7);
        assert_eq!((faults(&copies), copies.load(last(1))), (WHOLE, 7));
        device.truncate(0).expect("truncated");
        assert_eq!(faults(&copies), GONE);
        assert_eq!(private().load(last(1)), 2);
        is_whole(&device);
    }),
    on_buffer("truncate.mapping-anew-shows-the-records", collecting_pc, |_, device, map| {
        map.reset();
        call();
        device.disable().expect("disabled");
        let records = map.copy(0, 1 + index(map.count()));
        assert!(records.len() > 1);
        device.truncate(0).expect("truncated");
        assert_eq!(fault(&map, 0), Some(Signal::SIGBUS));
        let again = device.map(map.words() as u64).expect("a new mapping");
        assert_eq!(again.copy(0, records.len()), records);
        collects(&device, &again);
    }),
    check("truncate.recording-goes-on", |cx| {
        const CALLS: usize = 50;
        /// How often each record occurs.
        fn records(map: &Map) -> BTreeMap<u64, usize> {
            let mut often = BTreeMap::new();
            for record in map.copy(1, index(map.count())) {
                *often.entry(record).or_default() += 1;
            }
            often
        }
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        map.reset();
        (0..CALLS).for_each(|_| call());
        let mut each_time = records(&map);
        each_time.retain(|_, &mut often| often >= CALLS);
        assert!(!each_time.is_empty());
        device.truncate(0).expect("truncated");
        (0..CALLS).for_each(|_| call());
        assert_eq!(fault(&map, 0), Some(Signal::SIGBUS));
        assert_eq!(device.disable(), Ok(()), "it is enabled");
        let again = device.map(map.words() as u64).expect("a new mapping");
        // Truncating is recorded too, but only the records of the calls count.
        let all = records(&again);
        for (record, often) in each_time {
            let now = all.get(&record).copied().unwrap_or_default();
            assert!(now >= often + CALLS, "{record:#x}: {often} times before, {now} now");
        }
        collects(&device, &again);
    }),
    on_buffer("truncate.remote-sections-go-on", enabled, |_, device, map| {
        let vhost = vhost();
        vhost.work();
        let early = map.copy(1, index(map.count()));
        assert!(!early.is_empty());
        device.truncate(0).expect("truncated");
        assert_eq!(fault(&map, 0), Some(Signal::SIGBUS));
        vhost.work();
        let again = device.map(map.words() as u64).expect("a new mapping");
        assert!(again.count() > early.len() as u64, "a section adds to it");
        assert_eq!(again.copy(1, early.len()), early, "behind the earlier ones");
        assert_eq!(device.disable(), Ok(()));
        collects(&device, &again);
    }),
];
