//! Adoption of devices that others opened, and recovery of devices that a target damaged.

use crate::device::{Device, Parts};
use crate::error::{Error, ErrorKind, Operation};
use crate::sys::{Look, stamp};
#[cfg(any(target_os = "linux", target_os = "netbsd"))]
use crate::{
    buffer::Width,
    sys::{File, Mapping},
};
use std::sync::atomic::Ordering;

impl Device {
    /// Takes over a descriptor that somebody else opened and sized, for example one that was
    /// inherited or passed over a socket, and maps its buffer of `words` kernel words.
    ///
    /// It stays close-on-exec or not, as it is. If somebody has enabled the device, enabling fails
    /// with [`AlreadyEnabled`](ErrorKind::AlreadyEnabled).
    ///
    /// # Errors
    ///
    /// - [`NotKcov`](ErrorKind::NotKcov): the file supports no kcov request.
    /// - [`Other`](ErrorKind::Other), [`OutOfMemory`](ErrorKind::OutOfMemory): the device has
    ///   another size, or none yet, or the kernel could not map the buffer.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the descriptor is a kcov device: another driver may treat the
    /// integer argument of a request as a pointer. The caller must also ensure that it was sized to
    /// `words` words: on NetBSD, a smaller `words` would map only part of the buffer.
    #[cfg(any(target_os = "linux", target_os = "netbsd"))]
    pub unsafe fn adopt(fd: std::os::fd::OwnedFd, words: usize) -> Result<Device, Error> {
        let file = File::Kernel(fd, None);
        // Drivers always refuse a size of 0; the errno tells whether they know the request.
        let is_its = |width: &&Width| file.set_size(**width, 0) != Err(file.system().wrong_width);
        let refuse = |kind| Error::new(Operation::Map, kind);
        let width = *file.system().widths.iter().find(is_its).ok_or(refuse(ErrorKind::NotKcov))?;
        // NetBSD 9 accepts a mapping of 0 bytes.
        let bytes = words.checked_mul(width.bytes()).filter(|bytes| *bytes >= size_of::<u64>());
        let bytes = bytes.ok_or(refuse(ErrorKind::Other))?;
        let mapping = Mapping::new(&file, bytes, 0).map_err(file.error(Operation::Map))?;
        let identity = file.identity();
        let parts = Parts { mapping, file, builder: None, stamp: 0, identity };
        Ok(Device::new(parts, bytes, width))
    }

    /// Whether the descriptor and the mapping are still those of the device, and no thread traces
    /// into the buffer. If so, restores the buffer's requested protection.
    ///
    /// Makes about ten system calls, empties the buffer, and overwrites the last word of each page.
    /// It cannot fault, because the kernel reads the memory. It does not touch another device, nor
    /// a buffer that another thread traces into. On NetBSD, call it from an untraced thread. From a
    /// traced one the answer is `false`, because the driver returns the same error for a busy thread
    /// and a busy device.
    #[must_use]
    pub fn is_intact(&mut self) -> bool {
        self.look().stamp.is_some()
    }

    /// Returns the device if it is [intact](Self::is_intact), and otherwise opens it again as it
    /// was first opened, with a new descriptor and a new mapped buffer.
    ///
    /// Call this before you use or drop the device, if a target may have closed, replaced,
    /// unmapped, remapped or truncated what is not its own. The last session's records are lost.
    ///
    /// The old descriptor is closed and the old buffer unmapped only if they are certainly still
    /// the device's. Whatever else has taken their place is left alone, and so are guard pages. A
    /// thread that is traced through a lost descriptor stays traced until it ends; enabling on it
    /// fails with [`AlreadyEnabled`](ErrorKind::AlreadyEnabled), so continue on another thread.
    ///
    /// # Errors
    ///
    /// Every error drops the device.
    /// - [`NotRecoverable`](ErrorKind::NotRecoverable): it is not intact, and it was
    ///   [adopted](Self::adopt).
    /// - Same as [`Builder::open`](crate::Builder::open).
    pub fn recover(mut self) -> Result<Device, Error> {
        let found = self.look();
        if found.stamp.is_some() {
            return Ok(self);
        }
        let Parts { mapping, file, builder, stamp, .. } = self.into_parts();
        mapping.abandon(stamp);
        if found.file_is_ours {
            drop(file);
        } else {
            // This descriptor number now belongs to another file.
            std::mem::forget(file);
        }
        let again =
            builder.ok_or_else(|| Error::new(Operation::Open, ErrorKind::NotRecoverable))?;
        again.open()
    }

    fn look(&mut self) -> Look {
        #[cfg(feature = "pkeys")]
        self.allow_reading();
        if self.file().identity() != self.parts.identity {
            return Look { stamp: None, file_is_ours: false };
        }
        let mut found =
            self.parts
                .mapping
                .look(self.file(), self.parts.stamp, self.buffer().width(), || self.is_free());
        if let Some(stamp) = found.stamp {
            self.parts.stamp = stamp;
            // A target may also have changed the protection.
            found.stamp = self.protect_again().is_ok().then_some(stamp);
        }
        found
    }

    /// Restores the requested protection of the device's pages.
    fn protect_again(&self) -> Result<(), i32> {
        let mapping = &self.parts.mapping;
        #[cfg(feature = "pkeys")]
        mapping.cover(mapping.key())?;
        mapping.set_writable(!self.write_protected)
    }

    /// Whether nothing is traced into the buffer. Does not access the mapping.
    fn is_free(&self) -> bool {
        if self.enabled.load(Ordering::Relaxed) != 0 {
            // A session was leaked. If it is another thread's, enabling will be refused.
            let _ = self.request_disable();
        }
        match self.file().enable(self.system().trace_pc) {
            Ok(()) => self.request_disable().is_ok(),
            Err(errno) => self.system().thread_is_busy == Some(errno),
        }
    }

    /// Stores a random number to the last word, to recognize the buffer later.
    pub(crate) fn put_stamp(&mut self) {
        self.parts.stamp = stamp();
        if let Some(last) = self.buffer().words64().last() {
            last.store(self.parts.stamp, Ordering::Relaxed);
        }
    }
}
