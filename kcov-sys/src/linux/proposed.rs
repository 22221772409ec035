//! What has been proposed on the mailing lists and is in no released kernel.
//!
//! The proposals do not know of one another: mode 2 and the request numbers 103 and 104 mean
//! different things in different ones. A number that a kernel accepts does not tell whose it is.
//! Each item names the proposal; what was posted last stands here.
//!
//! | Proposal | Author | Last posted |
//! |---|---|---|
//! | extended records | Jann Horn | 2026-03-18, "KCOV function entry/exit records" v2 |
//! | unique modes | Jiao Joey | 2025-01-14, "kcov: Introduce New Unique PC/EDGE/CMP Modes" v1 |
//! | unique enable | Alexander Potapenko | 2025-07-31, "Coverage deduplication for KCOV" v4 |

use crate::ioc::Encoding;

// ---- Extended records ---------------------------------------------------------------------------

/// Mode of `KCOV_ENABLE` and `KCOV_REMOTE_ENABLE`: program counters, one word each, that say
/// whether a function was entered or left there. Extended records.
pub const KCOV_TRACE_PC_EXT: u32 = 2;

/// The bits of an extended record that belong to the program counter.
pub const KCOV_RECORD_IP_MASK: u64 = 0x00ff_ffff_ffff_ffff;
/// The bits of an extended record that say what it is.
pub const KCOV_RECORDFLAG_TYPEMASK: u64 = 0xf000_0000_0000_0000;
/// Type of an extended record: neither of the others. The word is the program counter itself.
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

/// The edge that the unique modes record when the block at `pc` follows that at `previous`, on a
/// kernel with a 64-bit `long`: the address, with its low 12 bits changed by a hash of those of the
/// previous one. The first edge after enabling has no previous block, which counts as 0.
#[must_use]
pub const fn kcov_uniq_edge(previous: u64, pc: u64) -> u64 {
    /// `GOLDEN_RATIO_64` of `include/linux/hash.h`.
    const RATIO: u64 = 0x61c8_8646_80b5_83eb;
    pc ^ ((previous & 0xfff).wrapping_mul(RATIO) & 0xfff)
}

// ---- Unique enable ------------------------------------------------------------------------------

/// Starts tracing of the calling thread: each program counter once. The argument is the size of the
/// bitmap in words, passed **by value**; the bitmap is the first part of the buffer, the trace
/// with its count follows. Unique enable.
pub const KCOV_UNIQUE_ENABLE: u32 = Requests::new(Encoding::LINUX_NATIVE, 8).unique_enable;
/// Empties the trace, and the bitmap if there is one, of the calling thread. The argument must be
/// 0. Unique enable.
pub const KCOV_RESET_TRACE: u32 = Requests::new(Encoding::LINUX_NATIVE, 8).reset_trace;

/// The request numbers of one kind of kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// [`KCOV_UNIQUE_ENABLE`]
    pub unique_enable: u32,
    /// [`KCOV_RESET_TRACE`]
    pub reset_trace: u32,
}

impl Requests {
    /// The numbers of a kernel with that encoding and a `long` of `long_bytes` (4 or 8) bytes.
    #[must_use]
    pub const fn new(encoding: Encoding, long_bytes: usize) -> Requests {
        Requests {
            unique_enable: encoding.iow(b'c', 103, long_bytes),
            reset_trace: encoding.io(b'c', 104),
        }
    }
}

const _: () = {
    assert!(KCOV_TRACE_PC_EXT == 2);
    assert!(KCOV_RECORDFLAG_TYPEMASK & KCOV_RECORD_IP_MASK == 0);
    assert!(KCOV_RECORDFLAG_TYPE_NORMAL & !KCOV_RECORDFLAG_TYPEMASK == 0);
    assert!(KCOV_RECORDFLAG_TYPE_ENTRY == 0);
    assert!(KCOV_RECORDFLAG_TYPE_EXIT == 1 << 60);

    assert!(KCOV_TRACE_UNIQ_PC == 2 && KCOV_TRACE_UNIQ_EDGE == 4 && KCOV_TRACE_UNIQ_CMP == 8);
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
};
