//! The complaints of a Linux kernel.

use super::TroubleKind;

/// The forms of lines, the more specific first.
pub const COMPLAINTS: &[super::Row] = &[
    ("Kernel panic - not syncing: ", TroubleKind::Panic),
    ("BUG: KASAN: * in ", TroubleKind::Sanitizer),
    ("BUG: KCSAN: * in ", TroubleKind::Sanitizer),
    ("BUG: KMSAN: * in ", TroubleKind::Sanitizer),
    ("BUG: KFENCE: * in ", TroubleKind::Sanitizer),
    ("KASAN: * in range [", TroubleKind::Sanitizer),
    ("UBSAN: * in *:", TroubleKind::Sanitizer),
    ("kmemleak: * new suspected memory leaks (see ", TroubleKind::Sanitizer),
    ("kmemleak: Kernel memory leak detector disabled", TroubleKind::Sanitizer),
    ("unreferenced object* 0x* (size *):", TroubleKind::Sanitizer),
    // The slab allocator names the damaged cache.
    ("BUG * (Not tainted): ", TroubleKind::Sanitizer),
    ("BUG * (Tainted: *): ", TroubleKind::Sanitizer),
    ("WARNING: possible circular locking dependency detected", TroubleKind::Lockdep),
    ("WARNING: possible recursive locking detected", TroubleKind::Lockdep),
    ("WARNING: possible irq lock inversion dependency detected", TroubleKind::Lockdep),
    ("WARNING: *IRQ-safe -> *IRQ-unsafe lock order detected", TroubleKind::Lockdep),
    ("WARNING: inconsistent lock state", TroubleKind::Lockdep),
    ("WARNING: bad unlock balance detected", TroubleKind::Lockdep),
    ("WARNING: bad contention detected", TroubleKind::Lockdep),
    ("WARNING: held lock freed", TroubleKind::Lockdep),
    ("WARNING: lock held when returning to user space", TroubleKind::Lockdep),
    ("WARNING: */* still has locks held", TroubleKind::Lockdep),
    ("WARNING: suspicious RCU usage", TroubleKind::Lockdep),
    ("INFO: trying to register non-static key.", TroubleKind::Lockdep),
    ("BUG: Invalid wait context", TroubleKind::Lockdep),
    ("[ BUG: Invalid wait context ]", TroubleKind::Lockdep),
    ("BUG: soft lockup - CPU#* stuck for ", TroubleKind::Hung),
    ("watchdog: BUG: soft lockup - CPU#* stuck for ", TroubleKind::Hung),
    ("watchdog: *Watchdog detected hard LOCKUP on cpu ", TroubleKind::Hung),
    ("NMI watchdog: *Watchdog detected hard LOCKUP on cpu ", TroubleKind::Hung),
    ("BUG: workqueue lockup - pool", TroubleKind::Hung),
    ("INFO: task *:* blocked for more than * seconds", TroubleKind::Hung),
    ("INFO: task *:* blocked in I/O wait for more than * seconds", TroubleKind::Hung),
    ("INFO: rcu_*stall* on CPU", TroubleKind::Hung),
    ("rcu: INFO: rcu_*stall* on CPU", TroubleKind::Hung),
    ("Out of memory: Killed process * (*) total-vm:", TroubleKind::Memory),
    (
        "Out of memory (oom_kill_allocating_task): Killed process * (*) total-vm:",
        TroubleKind::Memory,
    ),
    ("BUG: sleeping function called from invalid context at *:", TroubleKind::Warning),
    ("BUG: scheduling while atomic: */*/0x", TroubleKind::Warning),
    ("WARNING: *:* at *, CPU#*: */", TroubleKind::Warning),
    ("WARNING: at *, CPU#*: */", TroubleKind::Warning),
    ("WARNING: CPU: * PID: * at ", TroubleKind::Warning),
    ("Oops*[#", TroubleKind::Oops),
    ("BUG: ", TroubleKind::Oops),
    ("kernel BUG at *:*!", TroubleKind::Oops),
    ("general protection fault*[#", TroubleKind::Oops),
    ("Internal error: *[#", TroubleKind::Oops),
    ("Unable to handle kernel ", TroubleKind::Oops),
    ("double fault: *[#", TroubleKind::Oops),
    ("stack segment: *[#", TroubleKind::Oops),
    ("invalid opcode: *[#", TroubleKind::Oops),
    ("divide error: *[#", TroubleKind::Oops),
    // s390
    ("* ilc:* [#", TroubleKind::Oops),
];

/// Lines with such a form that do not tell of a fault: a checker reports that it started, or that it
/// lacked memory and therefore scans more than necessary, or checks no more.
pub const ORDINARY: &[&str] = &[
    "kmemleak: Kernel memory leak detector initialized",
    "kmemleak: Automatic memory scanning thread ",
    "kmemleak: Cannot allocate a scan area, scanning the full object",
    "BUG: MAX_* too low!",
];

/// Whether a line is the whole report, or the end of one that has other forms.
pub fn is_sure(line: &str) -> bool {
    ["kmemleak: ", "unreferenced object", "Out of memory"]
        .iter()
        .any(|first| line.starts_with(first))
}

/// Whether only a report has such a line: its processor, its stack, its registers. User-Mode Linux
/// prints registers before a panic, not after another complaint.
pub fn is_body(line: &str) -> bool {
    const FIRST: &[&str] = &[
        "Call Trace:",
        "Call trace:",
        "Backtrace:",
        "Stack:",
        "Modules linked in:",
        "Hardware name: ",
        "EIP: ",
        "NIP:",
        "NIP [",
        "PC is at ",
        "pc : ",
        "epc : ",
        "Krnl PSW : ",
        "Slab 0x",
        "Showing busy workqueues",
        "rcu: \t",
    ];
    FIRST.iter().any(|first| line.starts_with(first))
        || line.starts_with("CPU: ") && line.contains(" PID: ")
        || !line.starts_with("Pid: ")
            && [" Not tainted", " Tainted: "].iter().any(|word| line.contains(word))
        || super::has_form(line, "Oops*[#")
        || super::has_form(line, "Internal error: *[#")
}

/// Whether a report ends with the line.
pub fn ends(line: &str) -> bool {
    line.starts_with("---[ end ")
}

/// Whether the line is a part of a report of this kind, although it has the form of another.
pub fn goes_on(kind: TroubleKind, line: &str) -> bool {
    const FAULT: &[&str] = &["Oops", "KASAN: ", "Internal error: "];
    kind == TroubleKind::Oops && FAULT.iter().any(|first| line.starts_with(first))
}

/// Whether the kernel panics because of what it reported before.
pub fn is_consequence(line: &str) -> bool {
    const CAUSES: &[&str] = &[
        "panic_on_",
        "set ...",
        "BUG!",
        "Fatal exception",
        "Fatal error in exception",
        "Oops",
        "Aiee, killing interrupt handler",
        "Attempted to kill init!",
        "hung_task: blocked tasks",
        "softlockup: hung tasks",
        "Hard LOCKUP",
        "RCU Stall",
    ];
    line.strip_prefix("Kernel panic - not syncing: ")
        .is_some_and(|why| CAUSES.iter().any(|cause| why.contains(cause)))
}

/// The first line of a report whose complaint comes after these lines.
pub fn first(kind: TroubleKind, before: &[String]) -> usize {
    let (most, is_first): (usize, fn(&str) -> bool) = match kind {
        // User-Mode Linux prints the registers first.
        TroubleKind::Panic => (24, |line| super::has_form(line, "Pid: *, comm: ")),
        TroubleKind::Warning | TroubleKind::Oops => (6, |line| line.contains("[ cut here ]")),
        _ => (2, |line| line.starts_with("==========")),
    };
    let earliest = before.len().saturating_sub(most);
    let found = before[earliest..].iter().position(|line| is_first(super::message(line)));
    found.map_or(before.len(), |at| earliest + at)
}

#[cfg(test)]
mod tests {
    use super::super::TroubleKind;
    use super::super::tests::{assert_forms, form};
    use super::COMPLAINTS;
    use crate::system::System;

    /// Lines from the targets' consoles or from the kernel's source.
    #[test]
    fn complaints_have_forms() {
        use TroubleKind::{Hung, Lockdep, Memory, Oops, Panic, Sanitizer, Warning};
        let lines = [
            ("Kernel panic - not syncing: sysrq triggered crash\r", Panic),
            ("<0>[    1.203456][   T42] Kernel panic - not syncing: dumptest", Panic),
            ("[ 9.1] BUG: KASAN: slab-out-of-bounds in f+0x1/0x2", Sanitizer),
            ("BUG: KCSAN: data-race in f / g", Sanitizer),
            ("BUG: KMSAN: uninit-value in f+0x1/0x2", Sanitizer),
            ("BUG: KFENCE: use-after-free read in f+0x1/0x2", Sanitizer),
            ("KASAN: null-ptr-deref in range [0x0000000000000000-0x0000000000000007]", Sanitizer),
            ("UBSAN: array-index-out-of-bounds in a.c:1:2", Sanitizer),
            ("kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)", Sanitizer),
            ("kmemleak: Kernel memory leak detector disabled", Sanitizer),
            ("unreferenced object 0xffff888004b3c000 (size 64):", Sanitizer),
            ("unreferenced object (percpu) 0x607ee1e2c9a8 (size 8):", Sanitizer),
            ("BUG kmalloc-64 (Not tainted): Poison overwritten", Sanitizer),
            ("BUG kmalloc-64 (Tainted: G    B             ): Redzone overwritten", Sanitizer),
            ("WARNING: possible circular locking dependency detected", Lockdep),
            ("WARNING: possible recursive locking detected", Lockdep),
            ("WARNING: possible irq lock inversion dependency detected", Lockdep),
            ("WARNING: inconsistent lock state", Lockdep),
            ("WARNING: bad unlock balance detected!", Lockdep),
            ("WARNING: held lock freed!", Lockdep),
            ("WARNING: lock held when returning to user space!", Lockdep),
            ("WARNING: suspicious RCU usage", Lockdep),
            ("WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected", Lockdep),
            ("WARNING: bad contention detected!", Lockdep),
            ("WARNING: prog/17 still has locks held!", Lockdep),
            ("INFO: trying to register non-static key.", Lockdep),
            ("BUG: Invalid wait context", Lockdep),
            ("[ BUG: Invalid wait context ]", Lockdep),
            ("BUG: soft lockup - CPU#0 stuck for 26s! [prog:17]", Hung),
            ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [prog:17]", Hung),
            ("watchdog: CPU0: Watchdog detected hard LOCKUP on cpu 1", Hung),
            ("watchdog: Watchdog detected hard LOCKUP on cpu 1", Hung),
            ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 1", Hung),
            ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!", Hung),
            ("INFO: task prog:17 blocked for more than 30 seconds.", Hung),
            ("INFO: task prog:17 blocked in I/O wait for more than 30 seconds.", Hung),
            ("INFO: rcu_sched self-detected stall on CPU", Hung),
            ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", Hung),
            ("Out of memory: Killed process 17 (prog) total-vm:4kB, anon-rss:4kB", Memory),
            (
                "Out of memory (oom_kill_allocating_task): Killed process 17 (prog) total-vm:4kB",
                Memory,
            ),
            ("BUG: sleeping function called from invalid context at mm/slab.h:1", Warning),
            ("BUG: scheduling while atomic: prog/17/0x00000002", Warning),
            (
                "WARNING: drivers/misc/lkdtm/bugs.c:164 at lkdtm_WARNING+0x6f/0x80, CPU#0: p/18",
                Warning,
            ),
            ("WARNING: at lkdtm_WARNING+0x6f/0x80, CPU#0: p/18", Warning),
            ("WARNING: CPU: 0 PID: 1 at kernel/kcov.c:1 kcov_ioctl+0x1/0x2", Warning),
            ("Oops: Oops: 0002 [#1] SMP", Oops),
            ("BUG: kernel NULL pointer dereference, address: 0000000000000000", Oops),
            ("kernel BUG at drivers/misc/lkdtm/bugs.c:105!", Oops),
            ("general protection fault, probably for non-canonical address 0x1: 0000 [#1]", Oops),
            ("Internal error: Oops: 0000000096000044 [#1] SMP", Oops),
            ("Unable to handle kernel NULL pointer dereference at virtual address 0", Oops),
            ("double fault: 0000 [#1] SMP", Oops),
            ("stack segment: 0000 [#1] SMP", Oops),
            ("invalid opcode: 0000 [#1] PREEMPT SMP KASAN", Oops),
            ("divide error: 0000 [#1] SMP", Oops),
            ("monitor event: 0040 ilc:2 [#1] SMP", Oops),
        ];
        assert_forms(System::Linux, COMPLAINTS, &lines);
    }

    #[test]
    fn ordinary_lines_have_none() {
        for line in [
            "",
            "Run /init as init process",
            "traps: prog[27] general protection fault ip:401000 sp:7ffc error:0",
            "prog[18]: segfault at 0 ip 0 sp 0 error 14",
            // A process may have any name.
            "BUG: oops[18]: segfault at 0 ip 0 sp 0 error 14",
            "UBSAN:[1[18]: segfault at 0 ip 0 sp 0 error 14",
            "BUG hunter (18): drop_caches: 3",
            // Programs' own messages.
            "Out of memory",
            "Out of memory: 17 objects left",
            "prog: Out of memory: Killed process 17 (prog)",
            "Memory cgroup out of memory: Killed process 17 (prog) total-vm:4kB",
            "watchdog: Delayed init of the lockup detector failed: -19",
            "NMI watchdog: Perf NMI watchdog permanently disabled",
            "unreferenced objects are looked for",
            "kasan: KernelAddressSanitizer initialized (generic)",
            "note: prog[27] exited with irqs disabled",
            "mitigations: Enabled attack vectors: SMT mitigations: off",
            "kmemleak: Kernel memory leak detector initialized (mem pool available: 11805)",
            "kmemleak: Cannot allocate a scan area, scanning the full object",
            // The result of a buffer larger than the memory. It is not a warning to panic on.
            "prog: vmalloc error: size 2147479552, exceeds total pages, mode:0xdc0(GFP_KERNEL)",
            "Call Trace:",
            "WARNING: the mand mount option has been deprecated and",
            "Oops, my mistake",
            "BUG: MAX_LOCKDEP_CHAINS too low!",
            "printk: debug: ignoring loglevel setting. WARNING: not at the start",
        ] {
            assert_eq!(form(line, System::Linux), None, "{line}");
        }
    }
}
