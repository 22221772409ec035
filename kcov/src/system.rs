//! The differences between the two systems, as data: requests, numbers, limits and errnos.
//! [`sys`](crate::sys) makes the requests.

use crate::buffer::Width;
use crate::error::{self, ErrorKind, Row};
use crate::mode::Kind;
use crate::pc::Pc;
use kcov_sys::{linux, netbsd};

/// One system's kcov.
#[derive(Debug)]
pub(crate) struct System {
    /// Possible widths of the kernel's words, in the order to try them.
    pub(crate) widths: &'static [Width],
    /// Minimum and maximum buffer size in words.
    pub(crate) limits: fn(Width) -> (u64, u64),
    /// The number of a mode, if the system has it.
    pub(crate) mode: fn(Kind) -> Option<u32>,
    /// The meanings of the driver's errors.
    pub(crate) errors: &'static [&'static [Row]],
    /// The errno of a size request for another word width.
    pub(crate) wrong_width: i32,
    /// The errno of an enable request on a free device by a busy thread.
    pub(crate) thread_is_busy: Option<i32>,
    /// Whether it records link-time addresses, not run-time ones.
    records_link_time: bool,
    /// Whether it has remote coverage by handles.
    pub(crate) has_handles: bool,
    /// Whether it has remote coverage by sources.
    pub(crate) has_sources: bool,
}

impl System {
    /// The number of a mode in requests for local or remote coverage.
    pub(crate) fn number(&self, kind: Kind, remote: bool) -> Result<u32, ErrorKind> {
        let number = (self.mode)(kind).filter(|_| kind.remote || !remote);
        number.ok_or(ErrorKind::Unsupported)
    }

    /// A recorded program counter as an address in the kernel's file.
    pub(crate) const fn link_time(&self, pc: Pc, kaslr_offset: u64) -> Pc {
        let offset = if self.records_link_time { 0 } else { kaslr_offset };
        Pc::new(pc.address().wrapping_sub(offset))
    }

    /// A recorded program counter as an address in the running kernel.
    pub(crate) const fn run_time(&self, pc: Pc, kaslr_offset: u64) -> Pc {
        let offset = if self.records_link_time { kaslr_offset } else { 0 };
        Pc::new(pc.address().wrapping_add(offset))
    }
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for tests and fake kernels"))]
pub(crate) const LINUX: System = System {
    // A 32-bit program may run under a 64-bit kernel, which accepts only its own request.
    widths: if size_of::<usize>() == 8 { &[Width::W64] } else { &[Width::W64, Width::W32] },
    limits: |width| (linux::KCOV_INIT_TRACE_MIN, linux::kcov_init_trace_max(width.bytes() as u64)),
    mode: |kind| Some(kind.linux),
    errors: &[
        error::linux::ERRORS,
        #[cfg(feature = "proposed")]
        crate::proposed::ERRORS,
    ],
    wrong_width: error::linux::ENOTTY,
    thread_is_busy: Some(error::linux::EBUSY),
    records_link_time: true,
    has_handles: true,
    has_sources: false,
};

#[cfg_attr(not(target_os = "netbsd"), allow(dead_code, reason = "for tests and fake kernels"))]
pub(crate) const NETBSD: System = System {
    widths: &[Width::W64],
    limits: |_| (netbsd::KCOV_BUF_MIN_ENTRIES, netbsd::KCOV_BUF_MAX_ENTRIES),
    mode: |kind| kind.netbsd,
    errors: &[error::netbsd::ERRORS],
    // No request of this driver fails with errno 0.
    wrong_width: 0,
    // The driver uses one errno for both cases.
    thread_is_busy: None,
    records_link_time: false,
    has_handles: false,
    has_sources: true,
};
