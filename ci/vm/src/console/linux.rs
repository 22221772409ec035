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
