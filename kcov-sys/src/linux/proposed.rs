//! Proposals from the mailing lists that no released kernel has.
//!
//! The proposals are independent and conflict: mode 2 and the request numbers 103 and 104 have
//! different meanings in different proposals. A kernel that accepts a number may implement any of
//! them. Each item names its proposal; the table lists the last posting of each.
//!
//! | Proposal | Author | Last posted |
//! |---|---|---|
//! | extended records | Jann Horn | 2026-03-18, "KCOV function entry/exit records" v2 |
//! | unique modes | Jiao Joey | 2025-01-14, "kcov: Introduce New Unique PC/EDGE/CMP Modes" v1 |
//! | unique enable | Alexander Potapenko | 2025-07-31, "Coverage deduplication for KCOV" v4 |

use crate::ioc::Encoding;

// ---- Extended records ---------------------------------------------------------------------------

/// Mode of `KCOV_ENABLE` and `KCOV_REMOTE_ENABLE`: program counters, one word each, with a flag for
/// function entry or exit. Extended records.
pub const KCOV_TRACE_PC_EXT: u32 = 2;

/// Mask of the program counter bits in an extended record.
pub const KCOV_RECORD_IP_MASK: u64 = 0x00ff_ffff_ffff_ffff;
/// Mask of the type bits in an extended record.
pub const KCOV_RECORDFLAG_TYPEMASK: u64 = 0xf000_0000_0000_0000;
/// Type of an extended record: neither entry nor exit. The word is the program counter itself.
pub const KCOV_RECORDFLAG_TYPE_NORMAL: u64 = 0xf000_0000_0000_0000;
/// Type of an extended record: a function was entered.
pub const KCOV_RECORDFLAG_TYPE_ENTRY: u64 = 0x0000_0000_0000_0000;
/// Type of an extended record: a function is about to return.
pub const KCOV_RECORDFLAG_TYPE_EXIT: u64 = 0x1000_0000_0000_0000;

// ---- Unique modes -------------------------------------------------------------------------------

/// Mode of `KCOV_ENABLE`: each program counter once. Unique modes.
pub const KCOV_TRACE_UNIQ_PC: u32 = 2;
/// Mode of `KCOV_ENABLE`: each edge once, in the second area. May be combined with
/// [`KCOV_TRACE_UNIQ_PC`]. Unique modes.
pub const KCOV_TRACE_UNIQ_EDGE: u32 = 4;
/// Mode of `KCOV_ENABLE`: each comparison once. Unique modes.
pub const KCOV_TRACE_UNIQ_CMP: u32 = 8;

/// Returns the edge that the unique modes record when the block at `pc` follows the block at
/// `previous`, on a kernel with a 64-bit `long`: `pc` with its low 12 bits XORed with a hash of the
/// low 12 bits of `previous`. For the first edge after enabling, `previous` is 0.
#[must_use]
pub const fn kcov_uniq_edge(previous: u64, pc: u64) -> u64 {
    /// `GOLDEN_RATIO_64` of `include/linux/hash.h`.
    const RATIO: u64 = 0x61c8_8646_80b5_83eb;
    pc ^ ((previous & 0xfff).wrapping_mul(RATIO) & 0xfff)
}

// ---- Unique enable ------------------------------------------------------------------------------

/// Starts tracing the calling thread, each program counter once. The argument is the size of the
/// bitmap in words, passed **by value**. The bitmap is the first part of the buffer; the trace,
/// with its count, follows. Unique enable.
pub const KCOV_UNIQUE_ENABLE: u32 = Requests::new(Encoding::LINUX_NATIVE, 8).unique_enable;
/// Empties the calling thread's trace, and the bitmap if there is one. The argument must be 0.
/// Unique enable.
pub const KCOV_RESET_TRACE: u32 = Requests::new(Encoding::LINUX_NATIVE, 8).reset_trace;

/// The request numbers of one kind of kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requests {
    /// [`KCOV_UNIQUE_ENABLE`]
    pub unique_enable: u32,
    /// [`KCOV_RESET_TRACE`]
    pub reset_trace: u32,
}

impl Requests {
    /// Returns the numbers for a kernel with this encoding and a `long` of `long_bytes` (4 or 8)
    /// bytes.
    #[must_use]
    pub const fn new(encoding: Encoding, long_bytes: usize) -> Requests {
        Requests {
            unique_enable: encoding.iow(b'c', 103, long_bytes),
            reset_trace: encoding.io(b'c', 104),
        }
    }
}

const _: () = {
    assert!(KCOV_RECORDFLAG_TYPEMASK & KCOV_RECORD_IP_MASK == 0);
    assert!(KCOV_RECORDFLAG_TYPE_NORMAL & !KCOV_RECORDFLAG_TYPEMASK == 0);

    assert!(kcov_uniq_edge(0, 0xffff_ffff_8100_0abc) == 0xffff_ffff_8100_0abc);
    assert!(kcov_uniq_edge(0x7_f001, 0) == 0x3eb);
    assert!(kcov_uniq_edge(2, 0) == 0x7d6);

    let generic64 = Requests::new(Encoding::LINUX_GENERIC, 8);
    assert!(generic64.unique_enable == 0x4008_6367);
    assert!(generic64.reset_trace == 0x6368);
    let generic32 = Requests::new(Encoding::LINUX_GENERIC, 4);
    assert!(generic32.unique_enable == 0x4004_6367);
    assert!(generic32.reset_trace == generic64.reset_trace);
    let powerpc64 = Requests::new(Encoding::LINUX_MIPS_POWERPC, 8);
    assert!(powerpc64.unique_enable == 0x8008_6367);
    assert!(powerpc64.reset_trace == 0x2000_6368);
    // The proposal of memory accesses has a request 103 without an argument: another number.
    assert!(generic64.unique_enable != Encoding::LINUX_GENERIC.io(b'c', 103));
    assert!(powerpc64.unique_enable != Encoding::LINUX_MIPS_POWERPC.io(b'c', 103));
};
