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
