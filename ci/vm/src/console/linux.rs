//! The complaints of a Linux kernel.

use super::TroubleKind;

/// Beginnings of lines, the more specific first.
pub const COMPLAINTS: &[super::Row] = &[
    ("Kernel panic", TroubleKind::Panic),
    ("BUG: KASAN:", TroubleKind::Sanitizer),
    ("BUG: KCSAN:", TroubleKind::Sanitizer),
    ("BUG: KMSAN:", TroubleKind::Sanitizer),
    ("BUG: KFENCE:", TroubleKind::Sanitizer),
    ("KASAN: ", TroubleKind::Sanitizer),
    ("UBSAN:", TroubleKind::Sanitizer),
    ("kmemleak:", TroubleKind::Sanitizer),
    ("unreferenced object* 0x", TroubleKind::Sanitizer),
    // The slab allocator names the damaged cache.
    ("BUG * (Not tainted): ", TroubleKind::Sanitizer),
    ("BUG * (Tainted: ", TroubleKind::Sanitizer),
    ("list_add corruption", TroubleKind::Sanitizer),
    ("list_add double add:", TroubleKind::Sanitizer),
    ("list_del corruption", TroubleKind::Sanitizer),
    ("refcount_t: ", TroubleKind::Sanitizer),
    ("WARNING: possible circular locking", TroubleKind::Lockdep),
    ("WARNING: possible recursive locking", TroubleKind::Lockdep),
    ("WARNING: possible irq lock inversion", TroubleKind::Lockdep),
    ("WARNING: inconsistent lock state", TroubleKind::Lockdep),
    ("WARNING: bad unlock balance", TroubleKind::Lockdep),
    ("WARNING: held lock freed", TroubleKind::Lockdep),
    ("WARNING: lock held when returning", TroubleKind::Lockdep),
    ("WARNING: suspicious RCU usage", TroubleKind::Lockdep),
    ("INFO: trying to register non-static key", TroubleKind::Lockdep),
    ("BUG: Invalid wait context", TroubleKind::Lockdep),
    ("[ BUG: Invalid wait context", TroubleKind::Lockdep),
    ("BUG: soft lockup", TroubleKind::Hung),
    ("watchdog: BUG: soft lockup", TroubleKind::Hung),
    ("watchdog: *Watchdog detected hard LOCKUP on cpu ", TroubleKind::Hung),
    ("NMI watchdog: *Watchdog detected hard LOCKUP on cpu ", TroubleKind::Hung),
    ("BUG: workqueue lockup", TroubleKind::Hung),
    ("INFO: task ", TroubleKind::Hung),
    ("INFO: rcu", TroubleKind::Hung),
    ("rcu: INFO:", TroubleKind::Hung),
    ("Out of memory: Killed process ", TroubleKind::Memory),
    ("Out of memory (oom_kill_allocating_task): Killed process ", TroubleKind::Memory),
    ("BUG: sleeping function", TroubleKind::Warning),
    ("BUG: scheduling while atomic", TroubleKind::Warning),
    ("WARNING: ", TroubleKind::Warning),
    ("Oops", TroubleKind::Oops),
    ("BUG: ", TroubleKind::Oops),
    ("kernel BUG at", TroubleKind::Oops),
    ("general protection fault", TroubleKind::Oops),
    ("Internal error:", TroubleKind::Oops),
    ("Unable to handle kernel", TroubleKind::Oops),
    ("double fault:", TroubleKind::Oops),
    ("stack segment:", TroubleKind::Oops),
];

/// Harmless lines: a checker reports that it started, or that it lacked memory and therefore scans
/// more than necessary.
pub const ORDINARY: &[&str] = &[
    "kmemleak: Kernel memory leak detector initialized",
    "kmemleak: Automatic memory scanning thread ",
    "kmemleak: Cannot allocate a scan area, scanning the full object",
];

#[cfg(test)]
mod tests {
    use super::super::tests::assert_complaints;
    use super::super::{TroubleKind, classify};
    use super::COMPLAINTS;
    use crate::system::System;

    fn kind(line: &str) -> Option<TroubleKind> {
        classify(line, System::Linux).map(|trouble| trouble.kind)
    }

    /// Lines from the targets' consoles or from the kernel's source.
    #[test]
    fn complaints_are_recognised() {
        use TroubleKind::{Hung, Lockdep, Memory, Oops, Panic, Sanitizer, Warning};
        let lines = [
            ("Kernel panic - not syncing: sysrq triggered crash\r", Panic),
            ("Kernel panic - not syncing: Kernel mode fault at addr 0x0, ip 0x6032cac0", Panic),
            ("[    1.203456] Kernel panic - not syncing: dumptest", Panic),
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
            ("list_add corruption. next->prev should be prev (00000001), but was 0.", Sanitizer),
            ("list_add double add: new=00000001, prev=00000001, next=00000002.", Sanitizer),
            ("list_del corruption, 0000000060a1b2c8->next is LIST_POISON1 (00000100)", Sanitizer),
            ("refcount_t: underflow; use-after-free.", Sanitizer),
            ("refcount_t: saturated; leaking memory.", Sanitizer),
            ("WARNING: possible circular locking dependency detected", Lockdep),
            ("WARNING: possible recursive locking detected", Lockdep),
            ("WARNING: possible irq lock inversion dependency detected", Lockdep),
            ("WARNING: inconsistent lock state", Lockdep),
            ("WARNING: bad unlock balance detected!", Lockdep),
            ("WARNING: held lock freed!", Lockdep),
            ("WARNING: lock held when returning to user space!", Lockdep),
            ("WARNING: suspicious RCU usage", Lockdep),
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
            ("INFO: rcu_sched self-detected stall on CPU", Hung),
            ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", Hung),
            ("Out of memory: Killed process 17 (prog) total-vm:4kB, anon-rss:4kB", Memory),
            ("Out of memory (oom_kill_allocating_task): Killed process 17 (prog)", Memory),
            ("BUG: sleeping function called from invalid context at mm/slab.h:1", Warning),
            ("BUG: scheduling while atomic: prog/17/0x00000002", Warning),
            (
                "WARNING: drivers/misc/lkdtm/bugs.c:164 at lkdtm_WARNING+0x6f/0x80, CPU#0: p/18",
                Warning,
            ),
            ("WARNING: CPU: 0 PID: 1 at kernel/kcov.c:1 kcov_ioctl+0x1/0x2", Warning),
            ("Oops: Oops: 0002 [#1] SMP", Oops),
            ("Oops: general protection fault, probably for non-canonical address", Oops),
            ("BUG: kernel NULL pointer dereference, address: 0000000000000000", Oops),
            ("BUG: failure at drivers/misc/lkdtm/bugs.c:132/lkdtm_BUG()!", Oops),
            ("kernel BUG at drivers/misc/lkdtm/bugs.c:105!", Oops),
            ("general protection fault, probably for non-canonical address 0x1: 0000", Oops),
            ("Internal error: Oops: 0000000096000044 [#1] SMP", Oops),
            ("Unable to handle kernel NULL pointer dereference at virtual address 0", Oops),
            ("double fault: 0000 [#1] SMP", Oops),
            ("stack segment: 0000 [#1] SMP", Oops),
        ];
        assert_complaints(System::Linux, COMPLAINTS, &lines);
    }

    #[test]
    fn ordinary_lines_are_not_complaints() {
        for line in [
            "",
            "Run /init as init process",
            "traps: prog[27] general protection fault ip:401000 sp:7ffc error:0",
            "prog[18]: segfault at 0 ip 0 sp 0 error 14",
            // A process may have any name.
            "BUG: oops[18]: segfault at 0 ip 0 sp 0 error 14",
            "WARNING: [18]: segfault at 0 ip 0 sp 0 error 14",
            "UBSAN:[1[18]: segfault at 0 ip 0 sp 0 error 14",
            "BUG hunter[18]: segfault at 0 ip 0 sp 0 error 14",
            "BUG hunter (18): drop_caches: 3",
            "refcount_t[18]: segfault at 0 ip 0 sp 0 error 14",
            // Programs' own messages.
            "Out of memory",
            "Out of memory: 17 objects left",
            "prog: Out of memory: Killed process 17 (prog)",
            "Memory cgroup out of memory: Killed process 17 (prog) total-vm:4kB",
            "watchdog: Delayed init of the lockup detector failed: -19",
            "NMI watchdog: Perf NMI watchdog permanently disabled",
            "list_add: 17 entries",
            "unreferenced objects are looked for",
            "rcu: Hierarchical RCU implementation.",
            "kasan: KernelAddressSanitizer initialized (generic)",
            "INFO: lockdep is turned off.",
            "note: prog[27] exited with irqs disabled",
            "lkdtm: Performing direct entry WARNING",
            "Kernel command line: console=ttyS0 panic=-1",
            "mitigations: Enabled attack vectors: SMT mitigations: off",
            "kmemleak: Kernel memory leak detector initialized (mem pool available: 11805)",
            "kmemleak: Cannot allocate a scan area, scanning the full object",
            // The result of a buffer larger than the memory. It is not a warning to panic on.
            "prog: vmalloc error: size 2147479552, exceeds total pages, mode:0xdc0(GFP_KERNEL)",
            "Call Trace:",
            "printk: debug: ignoring loglevel setting. WARNING: not at the start",
        ] {
            assert_eq!(kind(line), None, "{line}");
        }
    }
}
