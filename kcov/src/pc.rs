//! Program counters, and how to convert them for other tools.

#[cfg(feature = "std")]
use crate::sys::SYSTEM;
use core::fmt;

/// A program counter as kcov records it: the return address of the compiler's coverage hook. That
/// is the instruction *after* the call; [`call_site`](Self::call_site) gives the call itself.
///
/// In Thumb code, on 32-bit Arm, the lowest bit of a return address is set.
///
/// To turn it into a name or a line, ask about the call, at the address that the tool knows:
///
/// ```
/// use kcov::{Arch, Pc};
///
/// let pc = Pc::new(0xffff_ffff_8134_5675);
/// // Ask addr2line(1) about the call, not about the instruction after it.
/// assert_eq!(pc.call_site(Arch::X86_64).address(), 0xffff_ffff_8134_5670);
/// // The address in /proc/kallsyms, under a KASLR offset of 0x1000000.
/// # #[cfg(target_os = "linux")]
/// assert_eq!(pc.run_time(0x100_0000).address(), 0xffff_ffff_8234_5675);
/// ```
///
/// # Platforms
///
/// Linux subtracts the KASLR offset, so the value is a link-time address of `vmlinux`. For modules
/// it is the run-time address minus the same offset. NetBSD records the run-time address.
/// [`link_time`](Self::link_time) and [`run_time`](Self::run_time) convert.
///
/// # References
///
/// `canonicalize_ip` in Linux's `kernel/kcov.c`; `__sanitizer_cov_trace_pc` in NetBSD's
/// `sys/kern/subr_kcov.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Pc(Address);

/// The address of the instruction that called the coverage hook, or of its last byte
/// ([`Arch::Um64`]). It lies in the function and line that were covered. The return address may
/// not: a call may be the last instruction of a line or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CallSite(Address);

macro_rules! define {
    ($($(#[$doc:meta])* $name:ident [$($target:literal)*] $call:literal, $encoding:ident, $text:expr;)*) => {
        /// A kernel architecture, which determines the length of call instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Arch {
            $($(#[$doc])* $name,)*
        }

        impl Arch {
            #[cfg(test)]
            const ALL: &[Arch] = &[$(Arch::$name),*];

            /// The architecture that this program was compiled for, if supported.
            ///
            /// The kernel's may differ: a program for x86_64 may run under User-Mode Linux, which
            /// [`running`](Self::running) recognizes. A 32-bit program may run under a 64-bit
            /// kernel; on x86, calls have the same length in both.
            pub const HOST: Option<Arch> = {
                let mut host = None;
                $(if cfg!(any($(target_arch = $target),*)) {
                    host = Some(Arch::$name);
                })*
                host
            };

            /// The architecture of the running kernel, if supported: [`HOST`](Self::HOST), or
            /// [`Um64`](Self::Um64) under User-Mode Linux.
            ///
            /// # Platforms
            ///
            /// On Linux on x86_64 it reads `/proc/cpuinfo`; without that, the answer is `HOST`.
            #[cfg(feature = "std")]
            pub fn running() -> Option<Arch> {
                match Arch::HOST {
                    Some(Arch::X86_64) if crate::sys::is_user_mode_linux() => Some(Arch::Um64),
                    host => host,
                }
            }

            /// Bytes from the start of a call to its return address, including the delay slot on
            /// MIPS. It is 1 where calls vary in length ([`Um64`](Arch::Um64)): that leads to the
            /// last byte of the call.
            pub const fn call_length(self) -> u64 {
                match self {
                    $(Arch::$name => $call,)*
                }
            }
        }
    };
}
kcov_sys::architectures!(define);

impl Pc {
    /// Wraps a recorded address.
    #[inline]
    pub const fn new(address: u64) -> Pc {
        Pc(Address(address))
    }

    /// The address, as recorded.
    #[inline]
    pub const fn address(self) -> u64 {
        self.0.0
    }

    /// The call that returns to this address. Wraps around if no call can return to it.
    #[inline]
    pub const fn call_site(self, arch: Arch) -> CallSite {
        let thumb = if matches!(arch, Arch::Arm) { self.address() & 1 } else { 0 };
        let start = self.address().wrapping_sub(thumb).wrapping_sub(arch.call_length());
        CallSite(Address(start))
    }

    /// The address in the kernel's image on disk, for tools that read symbols and debug information.
    /// The *KASLR offset* is the run-time address minus the link-time address, in bytes; without
    /// KASLR it is 0. The crate `kcov-signal` finds it.
    ///
    /// # Platforms
    ///
    /// On Linux it is the recorded address, also in modules; on NetBSD the offset is subtracted.
    #[cfg(feature = "std")]
    pub const fn link_time(self, kaslr_offset: u64) -> Pc {
        SYSTEM.link_time(self, kaslr_offset)
    }

    /// The address in the running kernel, as in Linux's `/proc/kallsyms` and `/proc/modules`.
    ///
    /// # Platforms
    ///
    /// On Linux the KASLR offset is added; on NetBSD it is the recorded address.
    #[cfg(feature = "std")]
    pub const fn run_time(self, kaslr_offset: u64) -> Pc {
        SYSTEM.run_time(self, kaslr_offset)
    }
}

impl CallSite {
    /// The address of the call.
    #[inline]
    pub const fn address(self) -> u64 {
        self.0.0
    }
}

/// A number of 64 bits. Its debug form is hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct Address(pub(crate) u64);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

macro_rules! as_hexadecimal {
    ($($type:ident)*) => {$(
        /// Hexadecimal with prefix, as addr2line(1) takes it.
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.address())
            }
        }

        /// Hexadecimal, with the prefix if `{:#x}` asks for it.
        impl fmt::LowerHex for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.address(), f)
            }
        }
    )*};
}
as_hexadecimal!(Pc CallSite);

/// Addresses of every architecture and system.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{LINUX, NETBSD};

    #[test]
    fn calls_lie_before_their_return_addresses_on_every_architecture() {
        for &arch in Arch::ALL {
            let pc = Pc::new(0xffff_ffff_8100_0010);
            assert_eq!(pc.address() - pc.call_site(arch).address(), arch.call_length(), "{arch:?}");
            // No call can return to 0.
            assert_eq!(Pc::new(0).call_site(arch).address(), arch.call_length().wrapping_neg());
        }
    }

    #[test]
    fn the_low_bit_of_thumb_code_is_no_part_of_the_address() {
        assert_eq!(Pc::new(0xc010_0005).call_site(Arch::Arm).address(), 0xc010_0000);
    }

    #[test]
    fn each_system_is_converted_by_its_own_rule() {
        let (linked, running) = (Pc::new(0xffff_ffff_8100_0010), Pc::new(0xffff_ffff_9e20_0010));
        let offset = 0x1d20_0000;
        assert_eq!(LINUX.link_time(linked, offset), linked);
        assert_eq!(LINUX.run_time(linked, offset), running);
        assert_eq!(NETBSD.link_time(running, offset), linked);
        assert_eq!(NETBSD.run_time(running, offset), running);
        // A module lies below the kernel, so its recorded address may look odd.
        let module = Pc::new(0xffff_ffff_c000_0010);
        let recorded = NETBSD.link_time(module, 0x3000_0000);
        assert_eq!(LINUX.run_time(recorded, 0x3000_0000), module);
    }

    #[test]
    fn addresses_are_written_as_tools_read_them() {
        let pc = Pc::new(0x1005);
        assert_eq!((pc.to_string(), format!("{pc:?}")), ("0x1005".into(), "Pc(0x1005)".into()));
        assert_eq!(format!("{pc:x} {pc:#010x}"), "1005 0x00001005");
        let site = pc.call_site(Arch::X86_64);
        assert_eq!(format!("{site} {site:?}"), "0x1000 CallSite(0x1000)");
    }
}
