//! The architectures of Linux guests. Only this file knows how they differ.

use object::elf;
use serde::{Deserialize, Deserializer, de};
use std::env::consts;

/// An architecture.
#[derive(Debug)]
pub struct Arch {
    /// Its name in `targets.toml`.
    pub name: &'static str,
    /// The machine's name in uname(2).
    pub machine: &'static str,
    /// rustc's triple for static programs.
    pub triple: &'static str,
    /// The cross compiler.
    cross: &'static str,
    /// The Debian packages of the cross compiler.
    pub cross_packages: &'static [&'static str],
    /// The value of `ARCH` for `make`; `SUBARCH` of User-Mode Linux.
    pub make: &'static str,
    /// The target of `make` and the file that it makes.
    pub image: [&'static str; 2],
    /// The ELF files that its kernels run: machine, and whether they have 64 bits and are
    /// big-endian.
    programs: &'static [(u16, bool, bool)],
    /// The types of calls' relocations, each with the distance in bytes from the relocated field to
    /// the return address.
    pub calls: &'static [(u32, u64)],
    /// The emulated machine.
    pub qemu: &'static Qemu,
}

/// An emulated machine with a console and a second line for the runner's frames.
#[derive(Debug)]
pub struct Qemu {
    /// The emulator.
    pub program: &'static str,
    /// Its Debian package.
    pub package: &'static str,
    /// The machine.
    pub machine: &'static str,
    /// The processor under TCG.
    pub cpu: &'static str,
    /// Its memory is a multiple of so many MiB.
    pub memory_unit: u32,
    /// The options for the second line, `chardev:channel`.
    pub line: &'static [&'static str],
    /// Linux's names of the console and of the second line in `/dev`.
    pub devices: [&'static str; 2],
    /// More words for the kernel.
    pub cmdline: &'static str,
}

/// An old PC with two serial lines. NetBSD boots on it, too.
pub static PC: Qemu = Qemu {
    program: "qemu-system-x86_64",
    package: "qemu-system-x86",
    machine: "pc",
    cpu: "max",
    memory_unit: 1,
    line: &["-serial", "chardev:channel"],
    devices: ["ttyS0", "ttyS1"],
    // On a busy host a working timer can be late, and the kernel's timer check would fail.
    cmdline: "no_timer_check",
};

/// The second line of machines with one serial port. With `max_ports=1`, the line exists once its
/// driver has probed the device.
const VIRTIO_MMIO: &[&str] =
    &["-device", "virtio-serial-device,max_ports=1", "-device", "virtconsole,chardev=channel"];

/// QEMU's own machine for guests, of which most architectures have one.
const VIRT: Qemu = Qemu {
    program: "",
    package: "qemu-system-misc",
    machine: "virt",
    cpu: "max",
    memory_unit: 1,
    line: VIRTIO_MMIO,
    devices: ["ttyS0", "hvc0"],
    cmdline: "",
};

static ARM64: Qemu = Qemu {
    program: "qemu-system-aarch64",
    package: "qemu-system-arm",
    // Newer processors have pointer authentication, which is slow under TCG.
    cpu: "cortex-a57",
    devices: ["ttyAMA0", "hvc0"],
    ..VIRT
};

static ARM: Qemu = Qemu { program: "qemu-system-arm", cpu: "cortex-a15", ..ARM64 };

static RISCV64: Qemu = Qemu {
    program: "qemu-system-riscv64",
    cpu: "rv64",
    // QEMU before 8.1 names the processor's extensions in a property that kernels ignore otherwise.
    cmdline: "riscv_isa_fallback",
    ..VIRT
};

static LOONGARCH64: Qemu = Qemu {
    program: "qemu-system-loongarch64",
    cpu: "la464",
    memory_unit: 1024,
    line: PC.line,
    devices: PC.devices,
    ..VIRT
};

static S390X: Qemu = Qemu {
    program: "qemu-system-s390x",
    machine: "s390-ccw-virtio",
    line: &["-device", "virtio-serial-ccw,max_ports=1", "-device", "virtconsole,chardev=channel"],
    devices: ["ttysclp0", "hvc0"],
    ..VIRT
};

/// A logical partition, which QEMU emulates without its hypervisor's remedies for speculation.
static PSERIES: Qemu = Qemu {
    program: "qemu-system-ppc64",
    package: "qemu-system-ppc",
    machine: "pseries,cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off",
    cpu: "power9",
    memory_unit: 256,
    line: PC.line,
    devices: ["hvc0", "hvc1"],
    // With a hashed page table, storing a record may fault, and the code that handles such faults is
    // itself recorded: the kernel ends.
    cmdline: "disable_radix=no",
};

/// All architectures.
static ALL: &[Arch] = &[
    Arch {
        name: "x86_64",
        machine: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        cross: "x86_64-linux-gnu-gcc",
        cross_packages: &["gcc-x86-64-linux-gnu"],
        make: "x86_64",
        image: ["bzImage", "arch/x86/boot/bzImage"],
        programs: &[(elf::EM_X86_64, true, false), (elf::EM_386, false, false)],
        calls: &[(elf::R_X86_64_PLT32, 4)],
        qemu: &PC,
    },
    Arch {
        name: "i386",
        machine: "i686",
        triple: "i686-unknown-linux-musl",
        cross: "i686-linux-gnu-gcc",
        // User-Mode Linux needs the C library, too.
        cross_packages: &["gcc-i686-linux-gnu", "libc6-dev-i386-cross"],
        make: "i386",
        image: ["bzImage", "arch/x86/boot/bzImage"],
        programs: &[(elf::EM_386, false, false)],
        calls: &[(elf::R_386_PLT32, 4), (elf::R_386_PC32, 4)],
        qemu: &PC,
    },
    Arch {
        name: "arm64",
        machine: "aarch64",
        triple: "aarch64-unknown-linux-musl",
        cross: "aarch64-linux-gnu-gcc",
        cross_packages: &["gcc-aarch64-linux-gnu"],
        make: "arm64",
        image: ["Image", "arch/arm64/boot/Image"],
        programs: &[(elf::EM_AARCH64, true, false)],
        calls: &[(elf::R_AARCH64_CALL26, 4)],
        qemu: &ARM64,
    },
    Arch {
        name: "arm",
        machine: "armv7l",
        triple: "armv7-unknown-linux-gnueabihf",
        cross: "arm-linux-gnueabihf-gcc",
        cross_packages: &["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"],
        make: "arm",
        image: ["zImage", "arch/arm/boot/zImage"],
        programs: &[(elf::EM_ARM, false, false)],
        // A conditional call has the type of a jump.
        calls: &[(elf::R_ARM_CALL, 4), (elf::R_ARM_JUMP24, 4)],
        qemu: &ARM,
    },
    Arch {
        name: "riscv64",
        machine: "riscv64",
        triple: "riscv64gc-unknown-linux-gnu",
        cross: "riscv64-linux-gnu-gcc",
        cross_packages: &["gcc-riscv64-linux-gnu", "libc6-dev-riscv64-cross"],
        make: "riscv",
        image: ["Image", "arch/riscv/boot/Image"],
        programs: &[(elf::EM_RISCV, true, false)],
        // The linker shortens calls of two instructions.
        calls: &[(elf::R_RISCV_CALL_PLT, 8), (elf::R_RISCV_JAL, 4)],
        qemu: &RISCV64,
    },
    Arch {
        name: "loongarch64",
        machine: "loongarch64",
        triple: "loongarch64-unknown-linux-gnu",
        cross: "loongarch64-linux-gnu-gcc",
        cross_packages: &["gcc-loongarch64-linux-gnu", "libc6-dev-loong64-cross"],
        make: "loongarch",
        image: ["vmlinux", "vmlinux"],
        programs: &[(elf::EM_LOONGARCH, true, false)],
        calls: &[(elf::R_LARCH_B26, 4)],
        qemu: &LOONGARCH64,
    },
    Arch {
        name: "s390x",
        machine: "s390x",
        triple: "s390x-unknown-linux-gnu",
        cross: "s390x-linux-gnu-gcc",
        cross_packages: &["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"],
        make: "s390",
        image: ["bzImage", "arch/s390/boot/bzImage"],
        programs: &[(elf::EM_S390, true, true)],
        calls: &[(elf::R_390_PLT32DBL, 4)],
        qemu: &S390X,
    },
    Arch {
        name: "ppc64le",
        machine: "ppc64le",
        triple: "powerpc64le-unknown-linux-gnu",
        cross: "powerpc64le-linux-gnu-gcc",
        cross_packages: &["gcc-powerpc64le-linux-gnu", "libc6-dev-ppc64el-cross"],
        make: "powerpc",
        image: ["vmlinux", "vmlinux"],
        programs: &[(elf::EM_PPC64, true, false)],
        calls: &[(elf::R_PPC64_REL24, 4)],
        qemu: &PSERIES,
    },
    Arch {
        name: "ppc64",
        machine: "ppc64",
        triple: "powerpc64-unknown-linux-musl",
        cross: "powerpc64-linux-gnu-gcc",
        cross_packages: &["gcc-powerpc64-linux-gnu"],
        make: "powerpc",
        image: ["vmlinux", "vmlinux"],
        programs: &[(elf::EM_PPC64, true, true)],
        calls: &[(elf::R_PPC64_REL24, 4)],
        qemu: &PSERIES,
    },
];

impl Arch {
    /// The architecture of targets that name none, and of NetBSD's guests.
    pub fn usual() -> &'static Self {
        &ALL[0]
    }

    /// This host's architecture.
    pub fn host() -> &'static Self {
        ALL.iter().find(|arch| arch.machine == consts::ARCH).unwrap_or(Self::usual())
    }

    /// Returns the architecture of this name.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        ALL.iter().find(|arch| arch.name == name).ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|arch| arch.name).collect();
            format!("`{name}` is not an architecture; there are: {}", known.join(", "))
        })
    }

    /// Returns the architecture whose programs have this triple.
    pub(crate) fn of_triple(triple: &str) -> Option<&'static Self> {
        ALL.iter().find(|arch| arch.triple == triple)
    }

    /// Whether this host compiles for it without a cross compiler.
    pub(crate) fn is_host(&self) -> bool {
        self.machine == Self::host().machine
    }

    /// Checks that this host can run a User-Mode Linux kernel of an architecture.
    pub(crate) fn check_user_mode(&self, kernel: &Arch) -> Result<(), String> {
        if kernel.programs.first().is_some_and(|program| self.programs.contains(program)) {
            return Ok(());
        }
        Err(format!(
            "needs a host that runs {} programs, because User-Mode Linux is a host program; this \
             host is {}: use a target of kind `qemu`",
            kernel.name, self.name
        ))
    }

    /// Whether calls in a linked kernel are found by its relocations. Kernels for x86 are decoded:
    /// User-Mode Linux's relocations do not tell where its calls are, and NetBSD's has none.
    pub(crate) fn keeps_relocations(&self) -> bool {
        !self.is_x86()
    }

    /// Whether it is x86, of 32 or of 64 bits.
    pub fn is_x86(&self) -> bool {
        self.runs(elf::EM_386, false, false)
    }

    /// The C compiler.
    pub fn compiler(&self) -> &'static str {
        if self.is_host() { "gcc" } else { self.cross }
    }

    /// The prefix of the compiler's other tools, `CROSS_COMPILE` for `make`.
    pub fn prefix(&self) -> &'static str {
        self.compiler().trim_end_matches("gcc")
    }

    /// Whether kernels of this architecture execute such ELF files.
    pub fn runs(&self, machine: u16, is_64: bool, is_big_endian: bool) -> bool {
        self.programs.contains(&(machine, is_64, is_big_endian))
    }
}

impl<'de> Deserialize<'de> for &'static Arch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Arch::named(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_mode_linux_needs_its_own_processor() {
        let [x86_64, i386, arm64] = ["x86_64", "i386", "arm64"].map(|it| Arch::named(it).unwrap());
        assert_eq!(x86_64.check_user_mode(x86_64), Ok(()));
        assert_eq!(x86_64.check_user_mode(i386), Ok(()));
        assert!(i386.check_user_mode(x86_64).is_err());
        let why = arm64.check_user_mode(x86_64).expect_err("another processor");
        assert!(why.starts_with("needs a host that runs x86_64 programs"), "{why}");
    }
}
