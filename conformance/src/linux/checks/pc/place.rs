//! The code that records point to. Records have the addresses that the kernel was linked at, even
//! if it was loaded elsewhere, so the checks use the kernel's symbols at those addresses.

use super::super::calls::seek_nowhere;
use crate::check::{Context, checks};
use crate::checks::shared::exec::traced_helper;
use crate::checks::shared::pc::records;
use crate::raw::{KCOV_TRACE_PC, Module, call, kernel_log, sites, symbols};
use crate::system::checks::{EXEC_WORDS, index, mapped, mapped_of};
use std::process::Stdio;

checks! {
    "pc.place.records-are-in-kernel-code": records_are_in_kernel_code,
    "pc.place.records-name-the-called-function": records_name_the_called_function,
    "pc.place.requests-record-kernel-code": requests_record_kernel_code,
    "pc.place.exec-is-recorded": exec_is_recorded,
    "pc.place.interrupts-add-nothing": interrupts_add_nothing,
    "pc.place.scheduler-and-locks-add-nothing": scheduler_and_locks_add_nothing,
    "pc.place.records-of-a-module-are-return-addresses": records_of_a_module_are_return_addresses,
    "pc.place.self-test-passes": self_test_passes,
}

fn records_are_in_kernel_code(cx: &Context) {
    let text = symbols().text();
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    for record in records(&map, call) {
        assert!(text.contains(&record), "{record:#x} is not in {text:#x?}");
    }
}

fn records_name_the_called_function(cx: &Context) {
    let symbols = symbols();
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    for (traced, function) in [(call as fn(), "read"), (seek_nowhere, "lseek")] {
        let records = records(&map, traced);
        let names = |record: &u64| {
            let named = symbols.names(*record);
            named.iter().any(|name| name.ends_with(&format!("sys_{function}")))
        };
        assert!(records.iter().any(names), "no record of {function}: {records:#x?}");
    }
}

fn requests_record_kernel_code(cx: &Context) {
    let text = symbols().text();
    let (device, map) = mapped(cx);
    let requests = || {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.disable().expect("disabled");
    };
    let records = records(&map, requests);
    assert!(records.len() > 1, "the tail of one and the head of the other");
    for record in records {
        assert!(text.contains(&record), "{record:#x} is not in {text:#x?}");
    }
}

fn exec_is_recorded(cx: &Context) {
    let (device, map) = mapped_of(cx, EXEC_WORDS);
    let mut helper = traced_helper(&device, KCOV_TRACE_PC);
    // The new program ends at once, since it has no input.
    helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    helper.status().expect("it runs");
    let count = index(map.count());
    assert!(count < map.words(), "the buffer has room");
    let records = map.copy(1, count);
    assert!(symbols().any_in("load_elf_binary", &records), "{} records", records.len());
}

fn interrupts_add_nothing(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    in_no_tick(|| records(&map, spin));
}

fn records_of_a_module_are_return_addresses(cx: &Context) {
    let module = Module::load().expect("the module");
    let (start, kernel) = (module.text(), symbols().text());
    let blocks = sites().blocks_of_module(Module::NAME, ".text");
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let mut records = records(&map, || module.call());
    records.retain(|record| !kernel.contains(record));
    assert!(records.len() > 5, "the module has recorded {records:#x?}");
    for record in records {
        let offset = record.wrapping_sub(start);
        assert!(blocks.contains(&offset), "{offset:#x} is behind no call of the hook");
    }
}

fn self_test_passes(_: &Context) {
    let log = kernel_log().expect("the kernel's log");
    let (_, after) = log.split_once("kcov: running self test").expect("its start");
    assert!(after.contains("kcov: done running self test"), "the test has not ended");
}

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
pub(in super::super) fn in_no_tick(mut collect: impl FnMut() -> Vec<u64>) {
    let end = interrupts() + 20;
    while interrupts() < end {
        in_none_of(TICK, &collect());
    }
}

/// Panics if one of the records is in one of these functions. The kernel must have the first of
/// them.
#[track_caller]
pub(in super::super) fn in_none_of(silent: &[&str], records: &[u64]) {
    let symbols = symbols();
    assert!(symbols.has(silent[0]), "the kernel has the function looked for");
    for &record in records {
        let names = symbols.names(record);
        assert!(!names.iter().any(|name| silent.contains(name)), "{record:#x} in {names:?}");
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
pub(in super::super) fn spin() {
    for step in 0..50_000_000_u32 {
        std::hint::black_box(step);
    }
}

fn scheduler_and_locks_add_nothing(cx: &Context) {
    // Functions of the scheduler and locks that yielding runs through. Not __schedule: it calls
    // recorded functions, and the record of one that ends with a jump to the hook is in its caller.
    const SILENT: &[&str] = &["schedule", "do_sched_yield", "_raw_spin_lock"];
    let symbols = symbols();
    assert!(symbols.has("schedule"), "the kernel has the function that is looked for");
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let yielded = records(&map, || {
        for _ in 0..100 {
            nix::sched::sched_yield().expect("sched_yield");
        }
        // Some kernels record nothing of yielding, since it is the scheduler's code.
        call();
    });
    assert!(!yielded.is_empty(), "what follows is recorded");
    for record in yielded {
        let names = symbols.names(record);
        assert!(!names.iter().any(|name| SILENT.contains(name)), "{record:#x} in {names:?}");
    }
}
