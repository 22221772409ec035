//! Handles to collect from, and the argument of the request.

use crate::buffer::Width;
use crate::error::{Error, ErrorKind, Operation};
use kcov_sys::linux::{
    KCOV_INSTANCE_MASK, KCOV_REMOTE_MAX_HANDLES, KCOV_SUBSYSTEM_COMMON, KCOV_SUBSYSTEM_USB,
    kcov_remote_arg, kcov_remote_handle,
};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;

const MAX_HANDLES: usize = KCOV_REMOTE_MAX_HANDLES as usize;

/// The argument of the request, with room for the maximum number of handles.
pub(crate) type Argument = kcov_remote_arg<MAX_HANDLES>;

/// Names global background work: an instance of a subsystem of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalHandle(u64);

impl GlobalHandle {
    /// The handle of a USB bus: hub events and request completions.
    #[doc(alias = "KCOV_SUBSYSTEM_USB")]
    pub const fn usb(bus: u32) -> GlobalHandle {
        GlobalHandle(kcov_remote_handle(KCOV_SUBSYSTEM_USB, bus as u64))
    }

    /// A raw handle of `KCOV_REMOTE_ENABLE`, for kernels newer than this crate. The highest byte is
    /// the subsystem, the low 32 bits are the instance; kernels refuse what they do not know.
    pub const fn from_raw(handle: u64) -> GlobalHandle {
        GlobalHandle(handle)
    }

    /// The raw handle of `KCOV_REMOTE_ENABLE`.
    pub const fn raw(self) -> u64 {
        self.0
    }
}

/// Names local background work: a number that nobody else on the machine uses, in any container.
/// [`Remote::any_common`] finds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommonHandle(NonZeroU32);

impl CommonHandle {
    /// Makes a handle from its number.
    pub const fn new(instance: NonZeroU32) -> CommonHandle {
        CommonHandle(instance)
    }

    /// Picks a random number.
    pub(super) fn random() -> CommonHandle {
        let number = RandomState::new().hash_one(std::process::id()) as u32;
        CommonHandle(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    pub(in crate::remote) fn of_argument(argument: &Argument) -> Option<CommonHandle> {
        NonZeroU32::new(argument.common_handle as u32).map(CommonHandle)
    }

    /// The raw handle of `KCOV_REMOTE_ENABLE`.
    pub const fn raw(self) -> u64 {
        kcov_remote_handle(KCOV_SUBSYSTEM_COMMON, self.0.get() as u64)
    }
}

/// The background work to collect from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Remote {
    area: Option<u32>,
    global: Vec<GlobalHandle>,
    common: Common,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Common {
    #[default]
    None,
    Any,
    Handle(CommonHandle),
}

impl Remote {
    /// Collects from nothing yet.
    pub fn new() -> Remote {
        Remote::default()
    }

    /// Adds a handle of global work, up to 256.
    pub fn global(mut self, handle: GlobalHandle) -> Remote {
        self.global.push(handle);
        self
    }

    /// Sets the handle of local work.
    pub fn common(mut self, handle: CommonHandle) -> Remote {
        self.common = Common::Handle(handle);
        self
    }

    /// Sets the handle of local work to one that is free on the whole machine. A process id is not:
    /// every container has a process 1.
    ///
    /// Enabling tries random numbers until the kernel accepts one.
    /// [`RemoteSession::common_handle`](crate::remote::RemoteSession::common_handle) returns it.
    pub fn any_common(mut self) -> Remote {
        self.common = Common::Any;
        self
    }

    /// Sets how many kernel words a section in a thread can collect, at least 3; the kernel drops the
    /// rest, and no trace shows it. A section that loses records to the default, the size of the
    /// device's buffer, fills that. Kernels with words of 32 bits allow at most `0x1fff_ffff`.
    pub fn area_words(mut self, words: u32) -> Remote {
        self.area = Some(words);
        self
    }

    pub(super) fn takes_any_common(&self) -> bool {
        self.common == Common::Any
    }

    /// The argument for a kernel with words of this width.
    pub(super) fn argument(
        &self,
        mode: u32,
        buffer_words: usize,
        width: Width,
    ) -> Result<Argument, Error> {
        let refuse = |kind| Err(Error::new(Operation::EnableRemote, kind));
        // Linux 7.3's `kcov_ioctl_locked` refuses areas of more than LONG_MAX / sizeof(long) words,
        // with the same errno as for an enabled device.
        let most = match width {
            Width::W64 => u32::MAX,
            Width::W32 => i32::MAX as u32 / 4,
        };
        let area = self.area.unwrap_or(u32::try_from(buffer_words).unwrap_or(u32::MAX));
        // With an area size of 0, the kernel prints a warning when a section starts. With 1 or 2, it
        // writes beyond the area: its list entry takes 3 words.
        if !(3..=most).contains(&area) {
            let error = Error::new(Operation::EnableRemote, ErrorKind::SizeOutOfLimits);
            return Err(error.with_limits(area.into(), 3..=most.into()));
        }
        let mut handles = [0; MAX_HANDLES];
        let Some(used) = handles.get_mut(..self.global.len()) else {
            return refuse(ErrorKind::TooManyHandles);
        };
        for (raw, handle) in used.iter_mut().zip(&self.global) {
            *raw = handle.0;
        }
        Ok(kcov_remote_arg {
            trace_mode: mode,
            area_size: area,
            num_handles: self.global.len() as u32,
            _pad: 0,
            common_handle: match self.common {
                Common::Handle(handle) => handle.raw(),
                Common::None | Common::Any => 0,
            },
            handles,
        })
    }
}

/// Whether the argument has a handle that this crate does not know: of another subsystem than USB,
/// or with a bit of neither mask, which `kcov_check_handle` of Linux 7.3 refuses too.
pub(super) fn has_unknown_subsystem(argument: &Argument) -> bool {
    let handles = argument.handles.iter().take(argument.num_handles as usize);
    handles.copied().any(|handle| handle & !KCOV_INSTANCE_MASK != KCOV_SUBSYSTEM_USB)
}

#[cfg(test)]
mod tests;
