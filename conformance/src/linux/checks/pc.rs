//! Program counters: behavior and promises that only Linux has. Records have the addresses that the
//! kernel was linked at, even if it was loaded elsewhere, so the checks use the symbols at these.

use super::*;
use crate::checks::shared::pc::records;

/// Functions that deliver a datagram.
pub(super) const DELIVERY: &[&str] = &["ip_rcv", "process_backlog", "udp_rcv"];

/// Functions of the timer interrupt on various architectures. Work that the thread does afterwards
/// is its own, and may be recorded.
const TICK: &[&str] = &[
    "update_process_times",
    "hrtimer_interrupt",
    "profile_tick",
    "run_local_timers",
    "tick_handle_periodic",
    "tick_nohz_handler",
    "tick_periodic",
    "update_wall_time",
];

/// Collects during twenty interrupts. Panics if the timer interrupt leaves a record.
#[track_caller]
pub(super) fn in_no_tick(mut collect: impl FnMut() -> Vec<u64>) {
    let end = interrupts() + 20;
    while interrupts() < end {
        in_none_of(TICK, &collect());
    }
}

/// Panics if one of the records is in one of these functions. The kernel must have the first of
/// them.
#[track_caller]
pub(super) fn in_none_of(silent: &[&str], records: &[u64]) {
    let symbols = symbols();
    assert!(symbols.has(silent[0]), "the kernel has the function looked for");
    for &record in records {
        let names = symbols.names(record);
        assert!(!names.iter().any(|name| silent.contains(name)), "{record:#x} in {names:?}");
    }
}

/// Panics unless all of the records are addresses of the kernel's code.
#[track_caller]
pub(super) fn in_kernel_code(records: impl IntoIterator<Item = u64>) {
    let text = symbols().text();
    for record in records {
        assert!(text.contains(&record), "{record:#x} is not in {text:#x?}");
    }
}

/// The kernel's interrupt count. On a quiet machine all are timer interrupts.
fn interrupts() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let line = text.lines().find_map(|line| line.strip_prefix("intr "));
    let number = line.and_then(|line| line.split(' ').next());
    number.expect("their number").parse().expect("a number")
}

/// Keeps the processor busy without system calls. Takes longer than the work between two rounds, so
/// that ticks hit it.
pub(super) fn spin() {
    for step in 0..50_000_000_u32 {
        std::hint::black_box(step);
    }
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("pc.full.stored-count-of-all-ones", page_of_pcs, |_, _device, map| {
        mark(&map, SENTINEL);
        let ones = if fits(u64::MAX) { u64::MAX } else { u32::MAX.into() };
        map.store(0, ones);
        call();
        let count = map.count();
        assert!(count >= page_words() && count != ones, "word 0 holds no record: {count:#x}");
        assert!(map.copy(1, map.words() - 1).iter().all(is_sentinel));
    }),
    on_buffer("pc.full.last-record-is-kernel-code", page_of_pcs, |_, _device, map| {
        map.reset();
        fill_up(&map);
        in_kernel_code(map.copy(1, map.words() - 1));
    }),
    check("pc.full.large-buffer-is-filled", |cx| {
        let (device, map) = mapped_of(cx, 2 << 20);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        is_filled(&map);
        assert_ne!(map.load(map.words() - 1), 0, "the last word holds a record");
    }),
    check("pc.soft.interrupts-add-nothing", |cx| {
        let loopback = Loopback::up();
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        let records = records(&map, || (0..20).for_each(|_| loopback.turn()));
        device.disable().expect("disabled");
        assert!(symbols().any_in("udp_sendmsg", &records), "what sends is the thread's own");
        in_none_of(DELIVERY, &records);
    }),
    on_buffer("pc.place.records-are-in-kernel-code", collecting_pc, |_, _device, map| {
        in_kernel_code(records(&map, call));
    }),
    check("pc.place.records-name-the-called-function", |cx| {
        let symbols = symbols();
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        for (traced, function) in [(call as fn(), "read"), (seek_nowhere, "lseek")] {
            let records = records(&map, traced);
            let names = |record: &u64| {
                let named = symbols.names(*record);
                named.iter().any(|name| name.ends_with(&format!("sys_{function}")))
            };
            assert!(records.iter().any(names), "no record of {function}: {records:#x?}");
        }
    }),
    on_buffer("pc.place.requests-record-kernel-code", mapped, |_, device, map| {
        let requests = || {
            device.enable(KCOV_TRACE_PC).expect("enabled");
            device.disable().expect("disabled");
        };
        let records = records(&map, requests);
        assert!(records.len() > 1, "the tail of one and the head of the other");
        in_kernel_code(records);
    }),
    on_buffer("pc.place.exec-is-recorded", mapped_exec, |_, device, map| {
        let mut helper = traced_helper(&device, KCOV_TRACE_PC);
        // The new program ends at once, since it has no input.
        helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        helper.status().expect("it runs");
        let count = index(map.count());
        assert!(count < map.words(), "the buffer has room");
        let records = map.copy(1, count);
        assert!(symbols().any_in("load_elf_binary", &records), "{} records", records.len());
    }),
    on_buffer("pc.place.interrupts-add-nothing", collecting_pc, |_, _device, map| {
        in_no_tick(|| records(&map, spin));
    }),
    on_buffer("pc.place.scheduler-and-locks-add-nothing", collecting_pc, |_, _device, map| {
        // Functions of the scheduler and locks that yielding runs through. Not
        // __schedule: it calls recorded functions, and the record of one that ends with
        // a jump to the hook is in its caller.
        const SILENT: &[&str] = &["schedule", "do_sched_yield", "_raw_spin_lock"];
        let yielded = records(&map, || {
            for _ in 0..100 {
                nix::sched::sched_yield().expect("sched_yield");
            }
            // Some kernels record nothing of yielding, since it is the scheduler's code.
            call();
        });
        assert!(!yielded.is_empty(), "what follows is recorded");
        in_none_of(SILENT, &yielded);
    }),
    check("pc.place.records-of-a-module-are-return-addresses", |cx| {
        let module = Module::load().expect("the module");
        let (start, kernel) = (module.text(), symbols().text());
        let blocks = Module::blocks();
        let (_device, map) = collecting(cx, KCOV_TRACE_PC);
        let mut records = records(&map, || module.call());
        records.retain(|record| !kernel.contains(record));
        assert!(records.len() > 5, "the module has recorded {records:#x?}");
        for record in records {
            let offset = record.wrapping_sub(start);
            assert!(blocks.contains(&offset), "{offset:#x} is behind no call of the hook");
        }
    }),
    check("pc.place.self-test-passes", |_| {
        let log = kernel_log().expect("the kernel's log");
        let (_, after) = log.split_once("kcov: running self test").expect("its start");
        assert!(after.contains("kcov: done running self test"), "the test has not ended");
    }),
];
