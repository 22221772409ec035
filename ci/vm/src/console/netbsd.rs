//! The complaints of a NetBSD kernel.

use super::TroubleKind;

/// Beginnings of lines, the more specific first. `WARNING:` is not one of them:
/// a clock without a date causes it.
pub const COMPLAINTS: &[super::Row] = &[
    ("panic: no init", TroubleKind::NoInit),
    ("exec /sbin/init: error", TroubleKind::NoInit),
    ("cannot mount root", TroubleKind::NoRoot),
    ("can't determine root device", TroubleKind::NoRoot),
    // A prompt that nobody answers.
    ("root device", TroubleKind::NoRoot),
    ("kcov-vm-init:", TroubleKind::Init),
    ("panic:", TroubleKind::Panic),
    ("kernel diagnostic assertion ", TroubleKind::Panic),
    ("kernel debugging assertion ", TroubleKind::Panic),
    ("ASan:", TroubleKind::Sanitizer),
    ("CSan:", TroubleKind::Sanitizer),
    ("MSan:", TroubleKind::Sanitizer),
    ("UBSan:", TroubleKind::Sanitizer),
    ("Mutex error:", TroubleKind::Lockdep),
    ("Reader / writer lock error:", TroubleKind::Lockdep),
    ("Kernel lock error:", TroubleKind::Lockdep),
    ("lock error:", TroubleKind::Lockdep),
    ("LOCKDEBUG:", TroubleKind::Lockdep),
    ("UVM: pid * killed: out of swap", TroubleKind::Memory),
    ("uvm_fault(", TroubleKind::Oops),
    ("uvm_fault: ", TroubleKind::Oops),
    ("fatal ", TroubleKind::Oops),
    ("Stopped in pid ", TroubleKind::Debugger),
    ("Stopped at ", TroubleKind::Debugger),
    ("db{", TroubleKind::Debugger),
    ("db>", TroubleKind::Debugger),
];

/// No harmless line begins like a complaint.
pub const ORDINARY: &[&str] = &[];

#[cfg(test)]
mod tests {
    use super::super::TroubleKind;
    use super::super::tests::{assert_forms, form};
    use super::COMPLAINTS;
    use crate::system::System;

    #[test]
    fn complaints_have_forms() {
        use TroubleKind::{
            Debugger, Init, Lockdep, Memory, NoInit, NoRoot, Oops, Panic, Sanitizer,
        };
        let lines = [
            ("panic: kernel diagnostic assertion \"x\" failed: file \"a.c\", line 1", Panic),
            ("kernel diagnostic assertion \"x\" failed: file \"a.c\", line 1", Panic),
            ("kernel debugging assertion \"x\" failed: file \"a.c\", line 1", Panic),
            ("[   5.1234567] panic: trap\r", Panic),
            ("panic: no init", NoInit),
            ("[   1.0000040] exec /sbin/init: error 8", NoInit),
            ("cannot mount root, error = 79", NoRoot),
            ("can't determine root device", NoRoot),
            ("[   1.9] root device (default ld0a): ", NoRoot),
            ("uvm_fault(0xffff800002ad3a10, 0x0, 1) -> e", Oops),
            ("uvm_fault: fault on null page", Oops),
            ("fatal page fault in supervisor mode", Oops),
            ("fatal breakpoint trap in supervisor mode", Oops),
            ("Mutex error: mutex_vector_enter,518: locking against myself", Lockdep),
            ("Reader / writer lock error: rw_vector_enter,1: locking against myself", Lockdep),
            ("Kernel lock error: _kernel_lock,244: spinout", Lockdep),
            ("lock error: mutex_destroy,1: is locked", Lockdep),
            ("LOCKDEBUG: Mutex error: mutex_vector_enter,518: locking against myself", Lockdep),
            ("[   5.1] UVM: pid 17.17 (prog), uid 0 killed: out of swap", Memory),
            ("ASan: Unauthorized Access In 0xffffffff80a", Sanitizer),
            ("CSan: Racy Access [Cpu0 Write Addr=0x1 Size=8 PC=0x1<f>]", Sanitizer),
            ("MSan: Uninitialized Stack Memory From f()", Sanitizer),
            ("UBSan: Undefined Behavior in a.c:1:2", Sanitizer),
            ("Stopped in pid 17.17 (prog) at  netbsd:breakpoint+0x5:  leave", Debugger),
            ("Stopped at      netbsd:breakpoint+0x5:  leave", Debugger),
            ("db{0}> ", Debugger),
            ("db> ", Debugger),
            ("kcov-vm-init: /dev/dty0*: there is no second serial line", Init),
        ];
        assert_forms(System::NetBsd, COMPLAINTS, &lines);
    }

    /// Lines from the consoles of healthy guests.
    #[test]
    fn ordinary_lines_have_none() {
        for line in [
            "",
            "[   1.0000000] NetBSD 10.99.12 (KC) #0: Fri Nov 21 07:38:18 UTC 2026",
            "[   1.0000000] WARNING: system needs entropy for security; see entropy(7)",
            "[   1.0478120] WARNING: preposterous TOD clock time",
            "[   1.1078432] root on ld0a dumps on ld0b",
            "[   1.1178440] root file system type: ffs",
            "[   1.0000030] acpi0: X/RSDT: OemId <BOCHS ,BXPC,00000001>",
            // A program's fault, its death, and possible process names.
            "pid 17 (panic: x), uid 0: exited on signal 11 (core not dumped)",
            "UVM: pid 17 is not killed",
            "panic: x[17]: no such file",
            "uvm_faults",
            "[   1.0000030] kern.module.path=/stand/amd64/10.99.12/modules",
        ] {
            assert_eq!(form(line, System::NetBsd), None, "{line}");
        }
        assert_eq!(form("panic: x", System::Linux), None);
    }
}
