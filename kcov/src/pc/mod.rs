//! Program counters: as the kernel records them, as debug information has them, and where modules
//! are.
//!
//! A record is a *return* address, and on some systems not one of the running kernel. Whoever turns
//! it into a name or a line has to know both.
//!
//! ```
//! use kcov::Pc;
//! use kcov::pc::{Arch, Recorded};
//!
//! let pc = Pc::new(0xffff_ffff_8134_5675);
//! // What addr2line(1) is to be asked for: the call, not what follows it.
//! assert_eq!(pc.call_site(Arch::X86_64).address(), 0xffff_ffff_8134_5670);
//! // Where it is in /proc/kallsyms of a kernel that was moved by 0x1000000.
//! assert_eq!(Recorded::Linked.running(pc, 0x100_0000).address(), 0xffff_ffff_8234_5675);
//! ```

mod module;

pub use module::{Module, Modules};

use core::fmt;

/// A program counter as kcov records it: the address to which the compiler's coverage hook
/// returns, so that of the instruction *after* the hook's call. [`call_site`](Self::call_site) is
/// that of the call.
///
/// # Platforms
///
/// On Linux the kernel has already subtracted the KASLR offset, so the value is an address of the
/// linked `vmlinux`, for modules too (their load address minus the same offset). On NetBSD the
/// value is the raw address. [`Recorded`] converts.
///
/// # References
///
/// `canonicalize_ip` in Linux's `kernel/kcov.c`; `__sanitizer_cov_trace_pc` in NetBSD's
/// `sys/kern/subr_kcov.c`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Pc(u64);

/// The address of the instruction that called the coverage hook, or of its last byte
/// ([`Arch::Um64`]). It belongs to the function and the line that were covered, which the return
/// address need not: a call may be the last instruction of a line, an inlined function or a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CallSite(u64);

/// An architecture of the kernel, which says how long its call instructions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arch {
    /// x86, 32 bits; also of User-Mode Linux.
    X86,
    /// x86, 64 bits; not of User-Mode Linux.
    X86_64,
    /// Arm, 32 bits.
    Arm,
    /// Arm, 64 bits.
    Aarch64,
    /// LoongArch.
    LoongArch,
    /// MIPS.
    Mips,
    /// PowerPC.
    PowerPc,
    /// RISC-V.
    RiscV,
    /// IBM Z.
    S390x,
    /// Xtensa.
    Xtensa,
    /// User-Mode Linux on x86, 64 bits. It is compiled for the large code model, in which a
    /// register has the hook's address: calls have 2 or 3 bytes, and more where the address is in
    /// memory.
    Um64,
}

impl Arch {
    /// The architecture that this program was compiled for, if this crate knows it. A 32-bit
    /// program may run under a 64-bit kernel; the two have calls of the same length. A program for
    /// x86_64 may run under User-Mode Linux, whose addresses are below 2<sup>63</sup>: that is
    /// [`Um64`](Arch::Um64).
    pub const HOST: Option<Arch> = if cfg!(target_arch = "x86") {
        Some(Arch::X86)
    } else if cfg!(target_arch = "x86_64") {
        Some(Arch::X86_64)
    } else if cfg!(target_arch = "arm") {
        Some(Arch::Arm)
    } else if cfg!(target_arch = "aarch64") {
        Some(Arch::Aarch64)
    } else if cfg!(target_arch = "loongarch64") {
        Some(Arch::LoongArch)
    } else if cfg!(any(target_arch = "mips", target_arch = "mips64")) {
        Some(Arch::Mips)
    } else if cfg!(any(target_arch = "powerpc", target_arch = "powerpc64")) {
        Some(Arch::PowerPc)
    } else if cfg!(any(target_arch = "riscv32", target_arch = "riscv64")) {
        Some(Arch::RiscV)
    } else if cfg!(target_arch = "s390x") {
        Some(Arch::S390x)
    } else if cfg!(target_arch = "xtensa") {
        Some(Arch::Xtensa)
    } else {
        None
    };

    /// From the start of a call to the address to which it returns, in bytes. On MIPS an
    /// instruction stands between the two. 1 where calls have several lengths ([`Um64`](Arch::Um64)):
    /// from the call's last byte.
    #[must_use]
    pub const fn call_length(self) -> u64 {
        match self {
            Arch::Um64 => 1,
            Arch::X86 | Arch::X86_64 => 5,
            Arch::Arm | Arch::Aarch64 | Arch::LoongArch | Arch::PowerPc | Arch::RiscV => 4,
            Arch::Mips => 8,
            Arch::S390x => 6,
            Arch::Xtensa => 3,
        }
    }
}

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

    /// The call that returns here. Wraps around for an address that no call can return to.
    #[inline]
    #[must_use]
    pub const fn call_site(self, arch: Arch) -> CallSite {
        CallSite(self.0.wrapping_sub(arch.call_length()))
    }
}

impl CallSite {
    /// Takes the address of a call, for example from a disassembly.
    #[inline]
    #[must_use]
    pub const fn new(address: u64) -> CallSite {
        CallSite(address)
    }

    /// The address of the call.
    #[inline]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }

    /// What kcov records when this call is executed. Wraps around as [`Pc::call_site`] does.
    #[inline]
    #[must_use]
    pub const fn pc(self, arch: Arch) -> Pc {
        Pc(self.0.wrapping_add(arch.call_length()))
    }
}

/// Which addresses a system's kcov records, where the kernel is not running at those it was linked
/// for.
///
/// A *slide* is the difference in bytes, running minus linked: KASLR's offset. It is 0 without
/// KASLR.
///
/// # References
///
/// As for [`Pc`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// Those that it was linked for: Linux subtracts the slide, also from addresses of modules.
    Linked,
    /// Those that it is running at: NetBSD.
    Running,
}

impl Recorded {
    /// What this system does.
    #[cfg(feature = "std")]
    pub const HOST: Recorded = crate::sys::RECORDED;

    /// The address in the kernel's file.
    #[inline]
    #[must_use]
    pub const fn linked(self, pc: Pc, slide: u64) -> Pc {
        match self {
            Recorded::Linked => pc,
            Recorded::Running => Pc(pc.0.wrapping_sub(slide)),
        }
    }

    /// The address in the running kernel: that of Linux's `/proc/kallsyms` and `/proc/modules`.
    #[inline]
    #[must_use]
    pub const fn running(self, pc: Pc, slide: u64) -> Pc {
        match self {
            Recorded::Linked => Pc(pc.0.wrapping_add(slide)),
            Recorded::Running => pc,
        }
    }
}

impl From<Pc> for u64 {
    #[inline]
    fn from(pc: Pc) -> u64 {
        pc.0
    }
}

impl From<CallSite> for u64 {
    #[inline]
    fn from(site: CallSite) -> u64 {
        site.0
    }
}

macro_rules! as_hexadecimal {
    ($($type:ident)*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($type), "({:#x})"), self.0)
            }
        }

        /// Prefixed hexadecimal, as addr2line(1) takes it.
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl fmt::LowerHex for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    )*};
}
as_hexadecimal!(Pc CallSite);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_returns_are_inverse_on_every_architecture() {
        for (arch, length) in [
            (Arch::X86, 5),
            (Arch::X86_64, 5),
            (Arch::Um64, 1),
            (Arch::Arm, 4),
            (Arch::Aarch64, 4),
            (Arch::LoongArch, 4),
            (Arch::Mips, 8),
            (Arch::PowerPc, 4),
            (Arch::RiscV, 4),
            (Arch::S390x, 6),
            (Arch::Xtensa, 3),
        ] {
            let pc = Pc::new(0xffff_ffff_8100_0010);
            assert_eq!(pc.call_site(arch).address(), pc.address() - length, "{arch:?}");
            for address in [0, 1, u64::MAX, pc.address()] {
                assert_eq!(Pc::new(address).call_site(arch).pc(arch), Pc::new(address));
            }
        }
    }

    #[test]
    fn each_system_is_converted_by_its_own_rule() {
        let (linked, running) = (Pc::new(0xffff_ffff_8100_0010), Pc::new(0xffff_ffff_9e20_0010));
        let slide = 0x1d20_0000;
        assert_eq!(Recorded::Linked.linked(linked, slide), linked);
        assert_eq!(Recorded::Linked.running(linked, slide), running);
        assert_eq!(Recorded::Running.linked(running, slide), linked);
        assert_eq!(Recorded::Running.running(running, slide), running);
        // A module lies below the kernel, so that its recorded address may look odd.
        let module = Pc::new(0xffff_ffff_c000_0010);
        let recorded = Recorded::Running.linked(module, 0x3000_0000);
        assert_eq!(Recorded::Linked.running(recorded, 0x3000_0000), module);
    }

    #[test]
    fn addresses_are_written_as_tools_read_them() {
        let pc = Pc::new(0x1005);
        assert_eq!((pc.to_string(), format!("{pc:?}")), ("0x1005".into(), "Pc(0x1005)".into()));
        let site = pc.call_site(Arch::X86_64);
        assert_eq!(format!("{site} {site:?} {site:x}"), "0x1000 CallSite(0x1000) 1000");
    }
}
