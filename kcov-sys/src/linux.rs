//! Header: `include/uapi/linux/kcov.h`. Then definitions that only `kernel/kcov.c` and
//! `Documentation/dev-tools/kcov.rst` have.
//!
//! Words: the buffer is an array of the *kernel's* `unsigned long`. Under a 64-bit kernel a word
//! has 8 bytes, even for a 32-bit program. In comparison mode every word has 64 bits under every
//! kernel.

#[cfg(feature = "proposed")]
pub mod proposed;

use crate::ioc::Encoding;
use core::mem::{align_of, offset_of, size_of};

/// Argument of [`KCOV_REMOTE_ENABLE`], with room for `N` handles.
///
/// The kernel copies 24 bytes, plus 8 for each of [`num_handles`](Self::num_handles), so
/// `num_handles` must be at most `N`. On 32-bit x86, a plain `u64` is aligned to 4 bytes. The
/// explicit alignment and padding give the same layout there, as `__aligned_u64` does in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
#[allow(non_camel_case_types)]
pub struct kcov_remote_arg<const N: usize = 0> {
    /// [`KCOV_TRACE_PC`] or [`KCOV_TRACE_CMP`].
    pub trace_mode: u32,
    /// Size in words of the private buffer of each remote section that runs in a thread. Sections
    /// in softirqs use `CONFIG_KCOV_IRQ_AREA_SIZE` words instead.
    pub area_size: u32,
    /// Number of valid elements of [`handles`](Self::handles), at most [`KCOV_REMOTE_MAX_HANDLES`].
    pub num_handles: u32,
    /// Unnamed padding of the C structure. The kernel ignores it.
    pub _pad: u32,
    /// Handle of local background work, in subsystem [`KCOV_SUBSYSTEM_COMMON`]; 0 for none.
    pub common_handle: u64,
    /// Handles of global background work.
    pub handles: [u64; N],
}

/// Maximum number of handles in [`kcov_remote_arg::handles`].
pub const KCOV_REMOTE_MAX_HANDLES: u32 = 0x100;

/// Sets the buffer size. The argument is the size in words, passed **by value** although the number
/// is encoded as `_IOR`.
///
/// This is the number for a kernel whose `long` is as wide as this program's. A 32-bit program
/// under a 64-bit kernel must issue [`KCOV_INIT_TRACE64`].
pub const KCOV_INIT_TRACE: u32 =
    if size_of::<usize>() == 8 { KCOV_INIT_TRACE64 } else { KCOV_INIT_TRACE32 };

/// Starts tracing the calling thread. The argument is the mode, passed by value.
pub const KCOV_ENABLE: u32 = NATIVE64.enable;

/// Stops tracing the calling thread. The argument must be 0.
pub const KCOV_DISABLE: u32 = NATIVE64.disable;

/// Starts collecting coverage from background work. The argument points to a [`kcov_remote_arg`].
pub const KCOV_REMOTE_ENABLE: u32 = NATIVE64.remote_enable;

/// Mode of [`KCOV_ENABLE`]: collect program counters, one word each.
pub const KCOV_TRACE_PC: u32 = 0;
/// Mode of [`KCOV_ENABLE`]: collect comparison operands, [`KCOV_WORDS_PER_CMP`] words each.
pub const KCOV_TRACE_CMP: u32 = 1;

/// Bit of a comparison's type: one operand, the first, is a compile-time constant.
pub const KCOV_CMP_CONST: u64 = 1 << 0;

/// Size bits of a comparison's type, for operands of `1 << n` bytes. `n` is 0 to 3.
#[doc(alias = "KCOV_CMP_SIZE")]
#[must_use]
pub const fn kcov_cmp_size(n: u32) -> u64 {
    (n as u64) << 1
}

/// Mask of the size bits in a comparison's type.
pub const KCOV_CMP_MASK: u64 = kcov_cmp_size(3);

/// Subsystem of common handles, which name local background work.
pub const KCOV_SUBSYSTEM_COMMON: u64 = 0x00 << 56;
/// Subsystem of USB; the instance is the bus number.
pub const KCOV_SUBSYSTEM_USB: u64 = 0x01 << 56;
/// Mask of the subsystem bits in a handle.
pub const KCOV_SUBSYSTEM_MASK: u64 = 0xff << 56;
/// Mask of the instance bits in a handle. The bits between the two masks must be 0.
pub const KCOV_INSTANCE_MASK: u64 = 0xffff_ffff;

/// Packs a handle from a subsystem and an instance. Returns 0 if either has a bit outside its mask.
#[must_use]
pub const fn kcov_remote_handle(subsys: u64, inst: u64) -> u64 {
    if subsys & !KCOV_SUBSYSTEM_MASK != 0 || inst & !KCOV_INSTANCE_MASK != 0 {
        return 0;
    }
    subsys | inst
}

// ---- Not in the header --------------------------------------------------------------------------

/// Path of the device when debugfs is mounted at its usual place (kcov.rst, "Prerequisites").
pub const KCOV_PATH: &str = "/sys/kernel/debug/kcov";

/// Words of one comparison record: type, first operand, second operand, PC
/// (kcov.rst, "Comparison operands collection").
pub const KCOV_WORDS_PER_CMP: usize = 4;

/// Minimum size in words for [`KCOV_INIT_TRACE`] (`kcov_ioctl`).
pub const KCOV_INIT_TRACE_MIN: u64 = 2;

/// Maximum size in words for [`KCOV_INIT_TRACE`], under a kernel whose `long` has `long_bytes`
/// bytes: `INT_MAX / sizeof(unsigned long)` (`kcov_ioctl`).
#[must_use]
pub const fn kcov_init_trace_max(long_bytes: u64) -> u64 {
    i32::MAX as u64 / long_bytes
}

/// The kernel-internal "operation is not supported". [`KCOV_ENABLE`] returns it if the kernel knows
/// the mode but was built without it. No libc defines it; it is not `EOPNOTSUPP` (`kcov_get_mode`).
pub const ENOTSUPP: i32 = 524;

/// [`KCOV_INIT_TRACE`] for a kernel with a 4-byte `long`, on this architecture.
pub const KCOV_INIT_TRACE32: u32 = Requests::new(Encoding::LINUX_NATIVE, 4).init_trace;
/// [`KCOV_INIT_TRACE`] for a kernel with an 8-byte `long`, on this architecture.
pub const KCOV_INIT_TRACE64: u32 = NATIVE64.init_trace;

const NATIVE64: Requests = Requests::new(Encoding::LINUX_NATIVE, 8);

/// The request numbers of one kind of kernel, for programs that handle requests of other kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requests {
    /// [`KCOV_INIT_TRACE`]
    pub init_trace: u32,
    /// [`KCOV_ENABLE`]
    pub enable: u32,
    /// [`KCOV_DISABLE`]
    pub disable: u32,
    /// [`KCOV_REMOTE_ENABLE`]
    pub remote_enable: u32,
}

impl Requests {
    /// Returns the numbers for a kernel with this encoding and a `long` of `long_bytes` (4 or 8)
    /// bytes.
    #[must_use]
    pub const fn new(encoding: Encoding, long_bytes: usize) -> Requests {
        Requests {
            init_trace: encoding.ior(b'c', 1, long_bytes),
            enable: encoding.io(b'c', 100),
            disable: encoding.io(b'c', 101),
            remote_enable: encoding.iow(b'c', 102, size_of::<kcov_remote_arg>()),
        }
    }
}

const _: () = {
    assert!(size_of::<kcov_remote_arg>() == 24);
    assert!(size_of::<kcov_remote_arg<1>>() == 32);
    assert!(size_of::<kcov_remote_arg<256>>() == 24 + 8 * KCOV_REMOTE_MAX_HANDLES as usize);
    assert!(align_of::<kcov_remote_arg>() == 8);
    assert!(offset_of!(kcov_remote_arg, trace_mode) == 0);
    assert!(offset_of!(kcov_remote_arg, area_size) == 4);
    assert!(offset_of!(kcov_remote_arg, num_handles) == 8);
    assert!(offset_of!(kcov_remote_arg, _pad) == 12);
    assert!(offset_of!(kcov_remote_arg, common_handle) == 16);
    assert!(offset_of!(kcov_remote_arg, handles) == 24);

    let generic64 = Requests::new(Encoding::LINUX_GENERIC, 8);
    assert!(generic64.init_trace == 0x8008_6301);
    assert!(generic64.enable == 0x6364);
    assert!(generic64.disable == 0x6365);
    assert!(generic64.remote_enable == 0x4018_6366);
    let generic32 = Requests::new(Encoding::LINUX_GENERIC, 4);
    assert!(generic32.init_trace == 0x8004_6301);
    assert!(generic32.enable == generic64.enable);
    assert!(generic32.disable == generic64.disable);
    assert!(generic32.remote_enable == generic64.remote_enable);
    let powerpc64 = Requests::new(Encoding::LINUX_MIPS_POWERPC, 8);
    assert!(powerpc64.init_trace == 0x4008_6301);
    assert!(powerpc64.enable == 0x2000_6364);
    assert!(powerpc64.disable == 0x2000_6365);
    assert!(powerpc64.remote_enable == 0x8018_6366);
    let powerpc32 = Requests::new(Encoding::LINUX_MIPS_POWERPC, 4);
    assert!(powerpc32.init_trace == 0x4004_6301);
    assert!(powerpc32.enable == powerpc64.enable);
    assert!(powerpc32.disable == powerpc64.disable);
    assert!(powerpc32.remote_enable == powerpc64.remote_enable);

    assert!(KCOV_CMP_MASK == 6);
    assert!(kcov_remote_handle(KCOV_SUBSYSTEM_USB, 7) == 0x0100_0000_0000_0007);
    assert!(kcov_remote_handle(KCOV_SUBSYSTEM_COMMON, 0xffff_ffff) == 0xffff_ffff);
    assert!(kcov_remote_handle(1 << 55, 0) == 0);
    assert!(kcov_remote_handle(0, 1 << 32) == 0);
    assert!(kcov_init_trace_max(8) == 0x0fff_ffff);
    assert!(kcov_init_trace_max(4) == 0x1fff_ffff);
};
