//! Header: `asm-generic/ioctl.h` and `arch/*/include/uapi/asm/ioctl.h` (Linux), `sys/ioccom.h`
//! (NetBSD).
//!
//! Encodes ioctl request numbers. An [`Encoding`] is a value, so a tracer or a test can compute the
//! numbers of a kernel other than the host's.

/// How a system packs direction, argument size, group and number into a request.
///
/// Directions follow the names of the macros: *write* means that user space writes and the kernel
/// reads (`_IOW`); *read* is the reverse (`_IOR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    none: u32,
    read: u32,
    write: u32,
    size_bits: u32,
}

impl Encoding {
    /// Linux on every architecture with kcov except MIPS and PowerPC: 14 size bits, and no
    /// direction bit for `_IO`.
    pub const LINUX_GENERIC: Encoding =
        Encoding { none: 0, read: 2 << 30, write: 1 << 30, size_bits: 14 };

    /// Linux on MIPS and PowerPC: 13 size bits, and a direction bit for `_IO` as well.
    pub const LINUX_MIPS_POWERPC: Encoding =
        Encoding { none: 1 << 29, read: 2 << 29, write: 4 << 29, size_bits: 13 };

    /// NetBSD on all architectures: `IOC_VOID`, `IOC_OUT`, `IOC_IN`, and 13 size bits.
    pub const NETBSD: Encoding =
        Encoding { none: 0x2000_0000, read: 0x4000_0000, write: 0x8000_0000, size_bits: 13 };

    /// The Linux encoding for the architecture this crate is compiled for.
    pub const LINUX_NATIVE: Encoding = crate::arch::ENCODING;

    /// `_IO(group, number)`: a request without an argument, or with one passed by value.
    #[doc(alias = "_IO")]
    #[must_use]
    pub const fn io(self, group: u8, number: u8) -> u32 {
        self.encode(self.none, group, number, 0)
    }

    /// `_IOR(group, number, type)` for a type of `size` bytes.
    ///
    /// # Panics
    ///
    /// If `size` does not fit in the encoding's size field, which has 14 bits in
    /// [`LINUX_GENERIC`](Self::LINUX_GENERIC) and 13 in the others.
    #[doc(alias = "_IOR")]
    #[must_use]
    pub const fn ior(self, group: u8, number: u8, size: usize) -> u32 {
        self.encode(self.read, group, number, size)
    }

    /// `_IOW(group, number, type)` for a type of `size` bytes.
    ///
    /// # Panics
    ///
    /// If `size` does not fit in the encoding's size field, which has 14 bits in
    /// [`LINUX_GENERIC`](Self::LINUX_GENERIC) and 13 in the others.
    #[doc(alias = "_IOW")]
    #[must_use]
    pub const fn iow(self, group: u8, number: u8, size: usize) -> u32 {
        self.encode(self.write, group, number, size)
    }

    const fn encode(self, direction: u32, group: u8, number: u8, size: usize) -> u32 {
        assert!(size < 1 << self.size_bits, "the argument is too large for this encoding");
        direction | (size as u32) << 16 | (group as u32) << 8 | number as u32
    }
}

const _: () = {
    // Requests that other headers define on these systems, as independent test values.
    assert!(Encoding::LINUX_GENERIC.io(b'T', 0x0E) == 0x540e); // TIOCSCTTY
    assert!(Encoding::LINUX_GENERIC.ior(b'f', 1, 8) == 0x8008_6601); // FS_IOC_GETFLAGS, 64-bit
    assert!(Encoding::LINUX_GENERIC.ior(b'f', 1, 4) == 0x8004_6601); // FS_IOC_GETFLAGS, 32-bit
    assert!(Encoding::LINUX_GENERIC.iow(b'f', 2, 8) == 0x4008_6602); // FS_IOC_SETFLAGS, 64-bit
    assert!(Encoding::LINUX_MIPS_POWERPC.ior(b'f', 1, 8) == 0x4008_6601);
    assert!(Encoding::LINUX_MIPS_POWERPC.iow(b'f', 2, 8) == 0x8008_6602);
    assert!(Encoding::NETBSD.io(b't', 13) == 0x2000_740d); // TIOCEXCL
    assert!(Encoding::NETBSD.ior(b'f', 127, 4) == 0x4004_667f); // FIONREAD
    assert!(Encoding::NETBSD.iow(b'f', 126, 4) == 0x8004_667e); // FIONBIO
};
