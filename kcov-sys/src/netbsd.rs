//! Header: `sys/sys/kcov.h`. Then definitions that only `sys/kern/subr_kcov.c` has.
//!
//! Words (entries, in kcov(4)) have 64 bits on every architecture. All arguments are passed by
//! pointer.

use crate::ioc::Encoding;
use core::ffi::c_int;
use core::mem::{align_of, offset_of, size_of};

/// Sets the buffer size. The argument points to a `u64`, the size in entries.
pub const KCOV_IOC_SETBUFSIZE: u32 = Encoding::NETBSD.iow(b'K', 1, size_of::<u64>());

/// Starts tracing the calling thread. The argument points to a C `int`, the mode.
pub const KCOV_IOC_ENABLE: u32 = Encoding::NETBSD.iow(b'K', 2, size_of::<c_int>());

/// Stops tracing the calling thread. No argument.
pub const KCOV_IOC_DISABLE: u32 = Encoding::NETBSD.io(b'K', 3);

/// Argument of [`KCOV_IOC_REMOTE_ATTACH`]. NetBSD 10 and later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct kcov_ioc_remote_attach {
    /// The subsystem, [`KCOV_REMOTE_VHCI`].
    pub subsystem: u64,
    /// The object within the subsystem to trace; see [`kcov_remote_vhci_id`].
    pub id: u64,
}

/// Attaches the descriptor to a source of remote coverage. The argument points to a
/// [`kcov_ioc_remote_attach`]. NetBSD 10 and later.
pub const KCOV_IOC_REMOTE_ATTACH: u32 =
    Encoding::NETBSD.iow(b'K', 10, size_of::<kcov_ioc_remote_attach>());

/// Detaches the descriptor from its source of remote coverage. No argument. NetBSD 10 and later.
pub const KCOV_IOC_REMOTE_DETACH: u32 = Encoding::NETBSD.io(b'K', 11);

/// Subsystem of the virtual USB host controllers, vhci(4).
pub const KCOV_REMOTE_VHCI: u64 = 0;

/// Packs the id of a port on the bus of a virtual USB host controller.
#[doc(alias = "KCOV_REMOTE_VHCI_ID")]
#[must_use]
pub const fn kcov_remote_vhci_id(bus: u64, port: u64) -> u64 {
    bus << 32 | port & 0xffff_ffff
}

/// Mode of [`KCOV_IOC_ENABLE`]: bind the device to the thread and record nothing.
pub const KCOV_MODE_NONE: c_int = 0;
/// Mode of [`KCOV_IOC_ENABLE`]: collect program counters, one entry each.
pub const KCOV_MODE_TRACE_PC: c_int = 1;
/// Mode of [`KCOV_IOC_ENABLE`]: collect comparison operands, [`KCOV_WORDS_PER_CMP`] entries each.
pub const KCOV_MODE_TRACE_CMP: c_int = 2;

/// One entry of the buffer. The C type is volatile; read it through an atomic or a volatile load.
#[allow(non_camel_case_types)]
pub type kcov_int_t = u64;

/// Size of an entry in bytes.
pub const KCOV_ENTRY_SIZE: usize = size_of::<kcov_int_t>();

// ---- Not in the header --------------------------------------------------------------------------

/// Path of the device (kcov(4), "FILES").
pub const KCOV_PATH: &str = "/dev/kcov";

/// Major number of the character device, the same on all ports (`sys/conf/majors`, `kcov`).
pub const KCOV_MAJOR: u32 = 346;

/// Entries of one comparison record: type, first operand, second operand, PC
/// (kcov(4), `KCOV_MODE_TRACE_CMP`).
pub const KCOV_WORDS_PER_CMP: usize = 4;

/// Minimum size in entries for [`KCOV_IOC_SETBUFSIZE`] (`kcov_allocbuf`).
pub const KCOV_BUF_MIN_ENTRIES: u64 = 2;

/// Maximum size in entries for [`KCOV_IOC_SETBUFSIZE`] (`subr_kcov.c`).
pub const KCOV_BUF_MAX_ENTRIES: u64 = 256 << 10;

/// Bit of a comparison's type: one operand, the first, is a compile-time constant
/// (`subr_kcov.c`).
pub const KCOV_CMP_CONST: u64 = 1;

/// Size bits of a comparison's type, for operands of `1 << n` bytes (`subr_kcov.c`). `n` is 0 to 3.
#[doc(alias = "KCOV_CMP_SIZE")]
#[must_use]
pub const fn kcov_cmp_size(n: u32) -> u64 {
    (n as u64) << 1
}

const _: () = {
    assert!(KCOV_IOC_SETBUFSIZE == 0x8008_4b01);
    assert!(KCOV_IOC_ENABLE == 0x8004_4b02);
    assert!(KCOV_IOC_DISABLE == 0x2000_4b03);
    assert!(KCOV_IOC_REMOTE_ATTACH == 0x8010_4b0a);
    assert!(KCOV_IOC_REMOTE_DETACH == 0x2000_4b0b);
    assert!(size_of::<kcov_ioc_remote_attach>() == 16);
    assert!(align_of::<kcov_ioc_remote_attach>() == align_of::<u64>());
    assert!(offset_of!(kcov_ioc_remote_attach, subsystem) == 0);
    assert!(offset_of!(kcov_ioc_remote_attach, id) == 8);
    assert!(kcov_remote_vhci_id(1, 2) == 0x1_0000_0002);
    assert!(kcov_remote_vhci_id(0, u64::MAX) == 0xffff_ffff);
    assert!(KCOV_ENTRY_SIZE == 8);
    assert!(kcov_cmp_size(3) == 6);
};
