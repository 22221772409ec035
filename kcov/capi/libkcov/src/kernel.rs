//! The running kernel: its modes and its text.

use crate::failure::{Failure, guard, kcov_failure};
use crate::memory::{given, path};
use crate::novelty::kcov_range;
use kcov::mode::{TraceCmp, TracePc};
use kcov::{Arch, Modes, Pc};
use kcov_signal::KernelText;
use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

/// The mode that records program counters: one word per record.
pub const KCOV_RECORD_PC: u32 = 1;
/// The mode that records comparisons: four words per record.
pub const KCOV_RECORD_CMP: u32 = 2;

/// The text of the running Linux kernel, without modules.
#[repr(C)]
#[derive(Debug)]
pub struct kcov_text {
    /// The addresses that Linux records: those of vmlinux.
    pub link_time: kcov_range,
    /// The addresses in /proc/kallsyms.
    pub run_time: kcov_range,
    /// The run-time address minus the link-time address, in bytes.
    pub kaslr_offset: u64,
}

/// Finds out which modes the kernel has, by enabling each in a thread of its own. `path` is the
/// device's, or NULL for the system's. `modes` gets KCOV_RECORD_PC, KCOV_RECORD_CMP or both. 0, or
/// -1 with the reason why kcov cannot be used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_probe(path: *const c_char, modes: Option<&mut u32>) -> c_int {
    guard("kcov_probe", -1, || {
        let modes = given(modes, "modes")?;
        // SAFETY: as the header demands.
        let found = match unsafe { self::path(path) } {
            Some(path) => Modes::probe_path(path),
            None => Modes::probe(),
        }?;
        let with = |found, mode| if found { mode } else { 0 };
        *modes = with(found.contains(TracePc), KCOV_RECORD_PC)
            | with(found.contains(TraceCmp), KCOV_RECORD_CMP);
        Ok(0)
    })
}

/// Finds the text of the running kernel, which takes the right to read kernel addresses. Linux
/// only. 0 or -1.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_text_read(text: Option<&mut kcov_text>) -> c_int {
    guard("kcov_text_read", -1, || {
        let text = given(text, "text")?;
        let found = KernelText::read().map_err(|e| Failure::new(kcov_failure::KernelText, e))?;
        let range = |range: std::ops::Range<u64>| kcov_range { start: range.start, end: range.end };
        *text = kcov_text {
            link_time: range(found.link_time()),
            run_time: range(found.run_time()),
            kaslr_offset: found.kaslr_offset(),
        };
        Ok(0)
    })
}

/// The address in the kernel's file of a recorded program counter, given the KASLR offset.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_pc_link_time(pc: u64, kaslr_offset: u64) -> u64 {
    Pc::new(pc).link_time(kaslr_offset).address()
}

/// The address in the running kernel of a recorded program counter, given the KASLR offset.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_pc_run_time(pc: u64, kaslr_offset: u64) -> u64 {
    Pc::new(pc).run_time(kaslr_offset).address()
}

/// The call that returns to a recorded program counter. Ask addr2line(1) about this address,
/// because the next one may belong to another line or function. Without a rule for the architecture
/// it is the program counter.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_pc_call_site(pc: u64) -> u64 {
    static ARCH: OnceLock<Option<Arch>> = OnceLock::new();
    guard("kcov_pc_call_site", pc, || {
        let arch = ARCH.get_or_init(Arch::running);
        Ok(arch.map_or(pc, |arch| Pc::new(pc).call_site(arch).address()))
    })
}
