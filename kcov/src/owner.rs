//! What a session holds while it lasts, a device or an attachment, owned or borrowed; and how it
//! ends, exactly once.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Error;
use crate::mode::Seal;
use crate::remote::netbsd::Attachment;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;

/// A [`Device`] or an [`Attachment`], or a mutable borrow of one.
///
/// A session that borrows its device leaves it to the caller; a session that owns it fits into one
/// struct with it. Sealed: only this crate implements it.
pub trait Owner: fmt::Debug {
    /// Makes remote sessions stay in their thread where the kernel wants that.
    #[doc(hidden)]
    type Thread;

    /// The device.
    #[doc(hidden)]
    fn device(&self, seal: Seal) -> &Device;

    /// The buffer that the session fills.
    #[doc(hidden)]
    #[inline]
    fn buffer(&self, seal: Seal) -> Buffer<'_> {
        self.device(seal).buffer()
    }
}

impl Owner for Device {
    type Thread = *mut ();

    #[inline]
    fn device(&self, _: Seal) -> &Device {
        self
    }
}

impl Owner for Attachment {
    type Thread = ();

    fn device(&self, _: Seal) -> &Device {
        self.inner()
    }

    fn buffer(&self, _: Seal) -> Buffer<'_> {
        Attachment::buffer(self)
    }
}

/// Borrows. A child's session has `&O`: what it gives back must not enable another mode.
macro_rules! borrows {
    ($($(#[$hidden:meta])? $borrow:ty;)*) => {$(
        $(#[$hidden])?
        impl<O: Owner> Owner for $borrow {
            type Thread = O::Thread;

            #[inline]
            fn device(&self, seal: Seal) -> &Device {
                (**self).device(seal)
            }

            #[inline]
            fn buffer(&self, seal: Seal) -> Buffer<'_> {
                (**self).buffer(seal)
            }
        }
    )*};
}
borrows!(&mut O; #[doc(hidden)] &O;);

/// How to end a session with an owner of type `O`.
pub(crate) trait End<O> {
    fn end(&self, owner: &O) -> Result<(), Error>;
}

/// An enabled session, until it is finished or dropped.
#[derive(Debug)]
pub(crate) struct Active<O, E: End<O>> {
    pub(crate) owner: O,
    pub(crate) how: E,
}

impl<O, E: End<O>> Active<O, E> {
    /// Ends the session. Returns the owner even on failure.
    pub(crate) fn finish(self) -> (Result<(), Error>, O) {
        let active = ManuallyDrop::new(self);
        let result = active.how.end(&active.owner);
        // SAFETY: `ManuallyDrop` prevents a second drop; `active` is not used again, so `how` moves
        // once.
        drop(unsafe { ptr::read(&raw const active.how) });
        // SAFETY: likewise for `owner`.
        (result, unsafe { ptr::read(&raw const active.owner) })
    }
}

impl<O, E: End<O>> Drop for Active<O, E> {
    fn drop(&mut self) {
        // A failure means that the session had already ended; a destructor cannot report it.
        let _ = self.how.end(&self.owner);
    }
}
