//! The differences between the two systems, as data: requests, numbers, limits and errnos.
//! [`sys`](crate::sys) makes the requests.

use crate::buffer::Width;
use crate::error::{self, ErrorKind, Row};
use crate::mode::Kind;
use crate::pc::AddressSpace;
use kcov_sys::{linux, netbsd};

/// One system's kcov.
#[derive(Debug)]
pub(crate) struct System {
    /// Possible widths of the kernel's words, in the order to try them.
    pub(crate) widths: &'static [Width],
    /// Minimum and maximum buffer size in words.
    pub(crate) limits: fn(Width) -> (u64, u64),
    /// The mode numbers.
    pub(crate) trace_pc: u32,
    pub(crate) trace_cmp: u32,
    /// The meanings of the driver's errors.
    pub(crate) errors: &'static [Row],
    /// The errno of a size request for another word width.
    pub(crate) wrong_width: i32,
    /// The errno of an enable request on a free device by a busy thread.
    pub(crate) thread_is_busy: Option<i32>,
    /// The kind of addresses that it records.
    pub(crate) addresses: AddressSpace,
    /// Whether it has remote coverage by handles.
    pub(crate) has_handles: bool,
    /// Whether it has remote coverage by sources.
    pub(crate) has_sources: bool,
}

impl System {
    /// The number of a mode in requests for local or remote coverage.
    #[cfg_attr(not(feature = "proposed"), allow(unused_variables, clippy::unnecessary_wraps))]
    pub(crate) fn number(&self, kind: Kind, remote: bool) -> Result<u32, ErrorKind> {
        match kind {
            Kind::Pc => Ok(self.trace_pc),
            Kind::Cmp => Ok(self.trace_cmp),
            // Unique modes are proposed for a thread's own coverage alone.
            #[cfg(feature = "proposed")]
            Kind::UniqPc | Kind::UniqCmp if remote => Err(ErrorKind::ModeNotSupported),
            #[cfg(feature = "proposed")]
            _ if !self.has_handles => Err(ErrorKind::ModeNotSupported),
            #[cfg(feature = "proposed")]
            Kind::PcExt => Ok(linux::proposed::KCOV_TRACE_PC_EXT),
            #[cfg(feature = "proposed")]
            Kind::UniqPc => Ok(linux::proposed::KCOV_TRACE_UNIQ_PC),
            #[cfg(feature = "proposed")]
            Kind::UniqCmp => Ok(linux::proposed::KCOV_TRACE_UNIQ_CMP),
        }
    }
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for tests and fake kernels"))]
pub(crate) const LINUX: System = System {
    // A 32-bit program may run under a 64-bit kernel, which accepts only its own request.
    widths: if size_of::<usize>() == 8 { &[Width::W64] } else { &[Width::W64, Width::W32] },
    limits: |width| (linux::KCOV_INIT_TRACE_MIN, linux::kcov_init_trace_max(width.bytes() as u64)),
    trace_pc: linux::KCOV_TRACE_PC,
    trace_cmp: linux::KCOV_TRACE_CMP,
    errors: error::linux::ERRORS,
    wrong_width: error::linux::ENOTTY,
    thread_is_busy: Some(error::linux::EBUSY),
    addresses: AddressSpace::LinkTime,
    has_handles: true,
    has_sources: false,
};

#[cfg_attr(not(target_os = "netbsd"), allow(dead_code, reason = "for tests and fake kernels"))]
pub(crate) const NETBSD: System = System {
    widths: &[Width::W64],
    limits: |_| (netbsd::KCOV_BUF_MIN_ENTRIES, netbsd::KCOV_BUF_MAX_ENTRIES),
    trace_pc: netbsd::KCOV_MODE_TRACE_PC as u32,
    trace_cmp: netbsd::KCOV_MODE_TRACE_CMP as u32,
    errors: error::netbsd::ERRORS,
    // No request of this driver fails with errno 0.
    wrong_width: 0,
    // The driver uses one errno for both cases.
    thread_is_busy: None,
    addresses: AddressSpace::RunTime,
    has_handles: false,
    has_sources: true,
};
