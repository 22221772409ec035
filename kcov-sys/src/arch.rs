//! The architectures whose kernels have kcov: one row each, in the macro `architectures`.

use crate::ioc::Encoding;

/// Where Linux kernels of an architecture are linked, which tells how far KASLR has moved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Text {
    /// `_text` has this address in every kernel.
    Always(u64),
    /// This symbol has this address in kernels with the usual configuration.
    Usually(&'static str, u64),
    /// The address depends on the configuration, but no kernel is moved.
    Fixed,
    /// The address is unknown.
    Unknown,
}

/// Calls the macro `$define` with the table. A row has the name, the compiler's architectures, the
/// bytes from the start of a call to its return address, Linux's encoding of requests, and where
/// Linux is linked.
#[doc(hidden)]
#[macro_export]
macro_rules! architectures {
    ($define:ident) => {
        $define! {
            /// x86, 32 bits, including User-Mode Linux.
            X86 ["x86"] 5, LINUX_GENERIC, Text::Always(0xffff_ffff_8100_0000);
            /// x86, 64 bits, excluding User-Mode Linux.
            // `__START_KERNEL` with the usual `CONFIG_PHYSICAL_START`, also for 32-bit programs.
            X86_64 ["x86_64"] 5, LINUX_GENERIC, Text::Always(0xffff_ffff_8100_0000);
            /// Arm, 32 bits, Arm and Thumb code. Thumb return addresses have their lowest bit set;
            /// `Pc::call_site` clears it.
            Arm ["arm"] 4, LINUX_GENERIC, Text::Fixed;
            /// Arm, 64 bits.
            // `KIMAGE_VADDR` if virtual addresses have at least 48 bits.
            Aarch64 ["aarch64"] 4, LINUX_GENERIC, Text::Usually("_text", 0xffff_8000_8000_0000);
            /// LoongArch.
            // `VMLINUX_LOAD_ADDRESS`.
            LoongArch ["loongarch64"] 4, LINUX_GENERIC, Text::Always(0x9000_0000_0020_0000);
            /// MIPS.
            Mips ["mips" "mips32r6" "mips64" "mips64r6"] 8, LINUX_MIPS_POWERPC, Text::Unknown;
            /// PowerPC.
            // `KERNELBASE` of the 64-bit kernels.
            PowerPc ["powerpc" "powerpc64"] 4, LINUX_MIPS_POWERPC,
                Text::Always(0xc000_0000_0000_0000);
            /// RISC-V.
            // `KERNEL_LINK_ADDR`.
            RiscV ["riscv32" "riscv64"] 4, LINUX_GENERIC,
                Text::Usually("_start", 0xffff_ffff_8000_0000);
            /// IBM Z.
            // `TEXT_OFFSET`. The kernel relocates itself at boot, even without KASLR.
            S390x ["s390x"] 6, LINUX_GENERIC, Text::Usually("_text", 0x10_0000);
            /// Xtensa.
            Xtensa ["xtensa"] 3, LINUX_GENERIC, Text::Unknown;
            /// User-Mode Linux on x86, 64 bits. It uses the large code model, where calls go
            /// through a register or memory and have 2 or more bytes.
            Um64 [] 1, LINUX_GENERIC, Text::Fixed;
        }
    };
}

macro_rules! natives {
    ($($(#[$doc:meta])* $name:ident [$($target:literal)*] $call:literal, $encoding:ident, $text:expr;)*) => {
        /// The encoding of Linux's requests on the architecture this crate is compiled for.
        pub(crate) const ENCODING: Encoding = {
            let mut native = Encoding::LINUX_GENERIC;
            $(if cfg!(any($(target_arch = $target),*)) {
                native = Encoding::$encoding;
            })*
            native
        };

        /// Where Linux is linked on the architecture this crate is compiled for.
        pub const TEXT: Text = {
            let mut native = Text::Unknown;
            $(if cfg!(any($(target_arch = $target),*)) {
                native = $text;
            })*
            native
        };

        /// The encoding of Linux's requests for rustc's target triple.
        #[must_use]
        pub fn encoding(triple: &str) -> Encoding {
            $(
                let targets: &[&str] = &[$($target),*];
                if targets.iter().any(|target| triple.starts_with(target)) {
                    return Encoding::$encoding;
                }
            )*
            Encoding::LINUX_GENERIC
        }
    };
}
architectures!(natives);

impl Text {
    /// The bytes by which the running kernel was moved. `loaded` has the addresses of symbols that
    /// `/proc/kallsyms` shows. Without `usual`, only what holds in every kernel counts.
    pub fn offset(self, usual: bool, loaded: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        let (symbol, linked) = match self {
            Text::Always(linked) => ("_text", linked),
            Text::Usually(symbol, linked) if usual => (symbol, linked),
            Text::Fixed => return loaded("_text").filter(|start| *start != 0).map(|_| 0),
            Text::Usually(..) | Text::Unknown => return None,
        };
        match loaded(symbol)? {
            // Hidden addresses read as zero.
            0 => None,
            // User-Mode Linux is a program of another kernel, and is not moved.
            start if linked >> 63 == 1 && start >> 63 == 0 => Some(0),
            start => start.checked_sub(linked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Text, encoding};

    #[test]
    fn triples_have_encodings() {
        use crate::ioc::Encoding;
        assert_eq!(encoding("powerpc64le-unknown-linux-gnu"), Encoding::LINUX_MIPS_POWERPC);
        assert_eq!(encoding("i686-unknown-linux-musl"), Encoding::LINUX_GENERIC);
    }

    #[test]
    fn a_kernel_is_moved_from_where_it_was_linked() {
        let of = |text: Text, usual, name, address| {
            text.offset(usual, |symbol| (symbol == name).then_some(address))
        };
        let x86 = Text::Always(0xffff_ffff_8100_0000);
        assert_eq!(of(x86, false, "_text", 0xffff_ffff_8100_0000), Some(0));
        assert_eq!(of(x86, false, "_text", 0xffff_ffff_9e20_0000), Some(0x1d20_0000));
        assert_eq!(of(x86, false, "_text", 0x6000_1000), Some(0));
        assert_eq!(of(x86, false, "_text", 0xffff_ffff_8000_0000), None);
        assert_eq!(of(x86, false, "_text", 0), None);
        assert_eq!(of(x86, false, "_start", 0xffff_ffff_8100_0000), None);
        let riscv = Text::Usually("_start", 0xffff_ffff_8000_0000);
        assert_eq!(of(riscv, true, "_start", 0xffff_ffff_a000_0000), Some(0x2000_0000));
        assert_eq!(of(riscv, false, "_start", 0xffff_ffff_a000_0000), None);
        let s390 = Text::Usually("_text", 0x10_0000);
        assert_eq!(of(s390, true, "_text", 0x3ff_e010_0000), Some(0x3ff_e000_0000));
        assert_eq!(of(Text::Fixed, false, "_text", 0x8000_8000), Some(0));
        assert_eq!(of(Text::Fixed, false, "_text", 0), None);
        assert_eq!(of(Text::Unknown, true, "_text", 0xffff_ffff_8010_0000), None);
    }
}
