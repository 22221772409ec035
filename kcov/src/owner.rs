//! What a session holds while it lasts: a device or an attachment, owned or borrowed.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::mode::Seal;
use crate::remote::netbsd::Attachment;

/// A [`Device`] or an [`Attachment`], or a mutable borrow of one.
///
/// A session that borrows its device leaves it to the caller; a session that owns it fits into one
/// struct with it. Sealed: only these four types implement it.
pub trait Owner {
    /// The device.
    #[doc(hidden)]
    fn device(&self, seal: Seal) -> &Device;

    /// The buffer that the session fills.
    #[doc(hidden)]
    fn buffer(&self, seal: Seal) -> Buffer<'_>;
}

impl Owner for Device {
    #[inline]
    fn device(&self, _: Seal) -> &Device {
        self
    }

    #[inline]
    fn buffer(&self, _: Seal) -> Buffer<'_> {
        Device::buffer(self)
    }
}

impl Owner for Attachment {
    fn device(&self, _: Seal) -> &Device {
        self.inner()
    }

    fn buffer(&self, _: Seal) -> Buffer<'_> {
        Attachment::buffer(self)
    }
}

impl<O: Owner> Owner for &mut O {
    #[inline]
    fn device(&self, seal: Seal) -> &Device {
        (**self).device(seal)
    }

    #[inline]
    fn buffer(&self, seal: Seal) -> Buffer<'_> {
        (**self).buffer(seal)
    }
}
