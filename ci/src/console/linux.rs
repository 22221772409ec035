//! What a Linux kernel says.

use super::TroubleKind;

/// Beginnings of lines, the more particular first.
pub const BEGINNINGS: &[(&str, TroubleKind)] = &[
    ("Kernel panic", TroubleKind::Panic),
    ("BUG: KASAN:", TroubleKind::Sanitizer),
    ("BUG: KCSAN:", TroubleKind::Sanitizer),
    ("BUG: KMSAN:", TroubleKind::Sanitizer),
    ("BUG: KFENCE:", TroubleKind::Sanitizer),
    ("UBSAN:", TroubleKind::Sanitizer),
    ("kmemleak:", TroubleKind::Sanitizer),
    ("WARNING: possible circular locking", TroubleKind::Lockdep),
    ("WARNING: possible recursive locking", TroubleKind::Lockdep),
    ("WARNING: possible irq lock inversion", TroubleKind::Lockdep),
    ("WARNING: inconsistent lock state", TroubleKind::Lockdep),
    ("WARNING: bad unlock balance", TroubleKind::Lockdep),
    ("WARNING: held lock freed", TroubleKind::Lockdep),
    ("WARNING: lock held when returning", TroubleKind::Lockdep),
    ("WARNING: suspicious RCU usage", TroubleKind::Lockdep),
    ("BUG: Invalid wait context", TroubleKind::Lockdep),
    ("[ BUG: Invalid wait context", TroubleKind::Lockdep),
    ("BUG: soft lockup", TroubleKind::Hung),
    ("watchdog: BUG: soft lockup", TroubleKind::Hung),
    ("BUG: workqueue lockup", TroubleKind::Hung),
    ("INFO: task ", TroubleKind::Hung),
    ("INFO: rcu", TroubleKind::Hung),
    ("rcu: INFO:", TroubleKind::Hung),
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

/// Beginnings of lines by which a checker only says that it is there, or that it went without some
/// memory for itself and looks at more than it has to.
pub const ORDINARY: &[&str] = &[
    "kmemleak: Kernel memory leak detector initialized",
    "kmemleak: Automatic memory scanning thread ",
    "kmemleak: Cannot allocate a scan area, scanning the full object",
];

#[cfg(test)]
mod tests {
    use super::super::{TroubleKind, classify};
    use crate::system::System;

    fn kind(line: &str) -> Option<TroubleKind> {
        classify(line, System::Linux).map(|trouble| trouble.kind)
    }

    /// Lines as they stood on consoles of the targets.
    #[test]
    fn complaints_are_recognised() {
        use TroubleKind::{Hung, Lockdep, Oops, Panic, Sanitizer, Warning};
        for (line, expected) in [
            ("Kernel panic - not syncing: sysrq triggered crash\r", Panic),
            ("Kernel panic - not syncing: Kernel mode fault at addr 0x0, ip 0x6032cac0", Panic),
            ("[    1.203456] Kernel panic - not syncing: dumptest", Panic),
            ("<0>[    1.203456][   T42] Kernel panic - not syncing: dumptest", Panic),
            ("BUG: kernel NULL pointer dereference, address: 0000000000000000", Oops),
            ("Oops: Oops: 0002 [#1] SMP", Oops),
            ("Oops: general protection fault, probably for non-canonical address", Oops),
            ("BUG: failure at drivers/misc/lkdtm/bugs.c:132/lkdtm_BUG()!", Oops),
            ("kernel BUG at drivers/misc/lkdtm/bugs.c:105!", Oops),
            (
                "WARNING: drivers/misc/lkdtm/bugs.c:164 at lkdtm_WARNING+0x6f/0x80, CPU#0: p/18",
                Warning,
            ),
            ("WARNING: CPU: 0 PID: 1 at kernel/kcov.c:1 kcov_ioctl+0x1/0x2", Warning),
            ("[ 9.1] BUG: KASAN: slab-out-of-bounds in f+0x1/0x2", Sanitizer),
            ("UBSAN: array-index-out-of-bounds in a.c:1:2", Sanitizer),
            ("kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)", Sanitizer),
            ("kmemleak: Kernel memory leak detector disabled", Sanitizer),
            ("WARNING: possible circular locking dependency detected", Lockdep),
            ("INFO: task prog:17 blocked for more than 30 seconds.", Hung),
            ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [prog:17]", Hung),
        ] {
            assert_eq!(kind(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn ordinary_lines_are_not_complaints() {
        for line in [
            "",
            "Run /init as init process",
            "traps: prog[27] general protection fault ip:401000 sp:7ffc error:0",
            "prog[18]: segfault at 0 ip 0 sp 0 error 14",
            "note: prog[27] exited with irqs disabled",
            "lkdtm: Performing direct entry WARNING",
            "Kernel command line: console=ttyS0 panic=-1",
            "mitigations: Enabled attack vectors: SMT mitigations: off",
            "kmemleak: Kernel memory leak detector initialized (mem pool available: 11805)",
            "kmemleak: Cannot allocate a scan area, scanning the full object",
            // What a buffer larger than the memory brings, which is no warning to panic on.
            "prog: vmalloc error: size 2147479552, exceeds total pages, mode:0xdc0(GFP_KERNEL)",
            "Call Trace:",
            "printk: debug: ignoring loglevel setting. WARNING: not at the start",
        ] {
            assert_eq!(kind(line), None, "{line}");
        }
    }
}
