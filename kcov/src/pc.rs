//! Program counters as the kernel records them.

use core::fmt;

/// A program counter as kcov records it: the address to which the compiler's coverage hook
/// returns, so that of the instruction *after* the hook's call.
///
/// # Platforms
///
/// On Linux the kernel has already subtracted the KASLR offset, so the value is an address of the
/// linked `vmlinux`, for modules too (their load address minus the same offset). On NetBSD the
/// value is the raw address.
///
/// # References
///
/// `canonicalize_ip` in Linux's `kernel/kcov.c`; `__sanitizer_cov_trace_pc` in NetBSD's
/// `sys/kern/subr_kcov.c`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Pc(u64);

impl Pc {
    /// Takes an address as recorded.
    #[inline]
    #[must_use]
    pub const fn new(address: u64) -> Pc {
        Pc(address)
    }

    /// The address as recorded.
    #[inline]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }
}

impl From<Pc> for u64 {
    #[inline]
    fn from(pc: Pc) -> u64 {
        pc.0
    }
}

impl fmt::Debug for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pc({:#x})", self.0)
    }
}

/// Prefixed hexadecimal, as addr2line(1) takes it.
impl fmt::Display for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::LowerHex for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}
