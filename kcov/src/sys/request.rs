//! The requests to the drivers: what each is called, and its number and argument on each system.

use crate::buffer::Width;
use crate::remote::linux::Argument;
use kcov_sys::errno;
use kcov_sys::netbsd::kcov_ioc_remote_attach;
use kcov_sys::{linux, netbsd};
use std::ffi::c_void;
use std::ptr;

/// A request to the driver, with its argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    /// Sets the size in words of this width.
    SetSize(Width, u64),
    /// Enables a mode by its number.
    Enable(u32),
    Disable,
    /// Linux.
    EnableRemote(&'a Argument),
    /// NetBSD.
    Attach(&'a kcov_ioc_remote_attach),
    /// NetBSD.
    Detach,
    /// Proposed for Linux. Enables with a bitmap of this many words.
    #[cfg(feature = "proposed")]
    EnableUnique(usize),
    /// Proposed for Linux.
    #[cfg(feature = "proposed")]
    ResetTrace,
}

/// A request's number and its argument: a number, or an address within the request or its argument.
type Call = (u32, *const c_void);

#[allow(dead_code, reason = "each system uses its own")]
impl Request<'_> {
    /// Numbers go by value, in the place of a pointer. Fails with the errno for a request that the
    /// system lacks, or a number that is no `usize`.
    pub(super) fn on_linux(&self) -> Result<Call, i32> {
        let number = |argument: u64| usize::try_from(argument).map(ptr::without_provenance);
        let (request, argument) = match *self {
            Request::SetSize(Width::W64, words) => (linux::KCOV_INIT_TRACE64, number(words)),
            Request::SetSize(Width::W32, words) => (linux::KCOV_INIT_TRACE32, number(words)),
            Request::Enable(mode) => (linux::KCOV_ENABLE, number(mode.into())),
            Request::Disable => (linux::KCOV_DISABLE, number(0)),
            Request::EnableRemote(argument) => {
                (linux::KCOV_REMOTE_ENABLE, Ok(ptr::from_ref(argument).cast()))
            }
            #[cfg(feature = "proposed")]
            Request::EnableUnique(words) => {
                (linux::proposed::KCOV_UNIQUE_ENABLE, number(words as u64))
            }
            #[cfg(feature = "proposed")]
            Request::ResetTrace => (linux::proposed::KCOV_RESET_TRACE, number(0)),
            // Linux has no sources.
            Request::Attach(_) | Request::Detach => return Err(errno::linux::EINVAL),
        };
        Ok((request, argument.map_err(|_| errno::linux::EINVAL)?))
    }

    /// Arguments go by pointer, which is valid for as long as this request. Fails with the errno for
    /// a request that the system lacks.
    pub(super) fn on_netbsd(&self) -> Result<Call, i32> {
        Ok(match self {
            Request::SetSize(_, words) => {
                (netbsd::KCOV_IOC_SETBUFSIZE, ptr::from_ref(words).cast())
            }
            Request::Enable(mode) => (netbsd::KCOV_IOC_ENABLE, ptr::from_ref(mode).cast()),
            Request::Disable => (netbsd::KCOV_IOC_DISABLE, ptr::null()),
            Request::Attach(source) => {
                (netbsd::KCOV_IOC_REMOTE_ATTACH, ptr::from_ref(*source).cast())
            }
            Request::Detach => (netbsd::KCOV_IOC_REMOTE_DETACH, ptr::null()),
            // NetBSD has no handles, and nothing is proposed.
            _ => return Err(errno::netbsd::EINVAL),
        })
    }

    /// The model's name for it.
    #[cfg(feature = "fake")]
    pub(crate) fn in_model(&self) -> kcov_model::Request {
        use kcov_model::{Handle, Remote, Request as Model};
        match *self {
            Request::SetSize(Width::W64, words) => Model::Size(words),
            Request::SetSize(..) => Model::SizeOfOtherWidth,
            Request::Enable(mode) => Model::Enable(mode.into()),
            Request::Disable => Model::Disable(0),
            Request::EnableRemote(argument) => {
                let number = argument.num_handles;
                let given = number.min(argument.handles.len() as u32);
                let handles = argument.handles[..given as usize].iter().copied().map(Handle);
                Model::RemoteEnable(Remote {
                    mode: argument.trace_mode,
                    area: argument.area_size,
                    fill: number - given,
                    ..Remote::new(Handle(argument.common_handle), handles.collect())
                })
            }
            Request::Attach(source) => Model::Attach(source.subsystem, source.id),
            Request::Detach => Model::Detach,
            #[cfg(feature = "proposed")]
            Request::EnableUnique(_) | Request::ResetTrace => Model::Unknown,
        }
    }
}
