//! Each PC once, with a bitmap in front of the trace.

use crate::buffer::{Buffer, Width, Words};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{Mode, TracePc};
use crate::owner::Owner;
use crate::session::Session;
use crate::sys::Request;
use crate::trace::Trace;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use std::sync::atomic::Ordering;

/// Shows that the kernel has the requests `KCOV_UNIQUE_ENABLE` and `KCOV_RESET_TRACE`.
///
/// # References
///
/// "kcov: add ioctl(KCOV_UNIQUE_ENABLE)" and "kcov: add ioctl(KCOV_RESET_TRACE)", Alexander
/// Potapenko, 2025-07-31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_UNIQUE_ENABLE")]
pub struct UniqueEnable(pub(super) ());

impl UniqueEnable {
    /// Starts tracing the calling thread, with an empty bitmap and an empty trace.
    ///
    /// The first `bitmap_words` words of the buffer become the bitmap, with one bit per basic block
    /// of the kernel; the trace gets the rest. If the bitmap is too small for all blocks, some
    /// program counters are recorded several times.
    ///
    /// # Errors
    ///
    /// - [`SizeOutOfLimits`](ErrorKind::SizeOutOfLimits): the bitmap is empty, or leaves less than
    ///   two words of the buffer.
    /// - Same as [`Device::enable`].
    pub fn enable(
        self,
        device: &mut Device,
        bitmap_words: usize,
    ) -> Result<UniqueSession<'_>, Error> {
        let limits = 1..=device.words() as u64 - 2;
        if !limits.contains(&(bitmap_words as u64)) {
            return Err(Error::new(Operation::EnableUnique, ErrorKind::SizeOutOfLimits)
                .with_limits(bitmap_words as u64, limits));
        }
        let device = &*device;
        let trace = device
            .buffer()
            .after(bitmap_words)
            .ok_or_else(|| Error::new(Operation::EnableUnique, ErrorKind::Unsupported))?;
        let enabled = device.begin(Operation::EnableUnique, Width::W64, |file| {
            // Clear the remains of another session, which may have split the buffer differently. No
            // kernel reads this trace's count before it is enabled.
            clear(device, bitmap_words);
            trace.set_count(Width::W64, 0);
            file.request(Request::EnableUnique(bitmap_words))
        });
        enabled?;
        let mut session = UniqueSession { device, trace, bitmap_words, this_thread: PhantomData };
        session.reset();
        Ok(session)
    }

    /// Makes the kernel empty the trace and the bitmap of a session. The end of this system call is
    /// recorded, so the trace is not empty afterwards.
    ///
    /// Prefer [`Session::reset`] and [`UniqueSession::reset`]: this crate always maps buffers
    /// writable. The request exists for programs that do not.
    ///
    /// # Errors
    ///
    /// - [`NotEnabled`](ErrorKind::NotEnabled): this thread is not the traced one.
    #[doc(alias = "KCOV_RESET_TRACE")]
    pub fn reset_trace<M: Mode, D: Owner>(self, session: &mut Session<M, D>) -> Result<(), Error> {
        request_reset(session.device())
    }
}

fn request_reset(device: &Device) -> Result<(), Error> {
    device.file().request(Request::ResetTrace).map_err(device.file().error(Operation::ResetTrace))
}

impl<'b> Buffer<'b> {
    /// The buffer after the first `words` words, under a kernel with 64-bit words. `None` under
    /// other kernels, or if nothing follows.
    fn after(self, words: usize) -> Option<Buffer<'b>> {
        let part = self.words64().get(words..).filter(|part| !part.is_empty())?;
        (self.width() == Width::W64).then(|| Buffer::from_words(part))
    }
}

/// Stores 0 to the first words of the buffer.
fn clear(device: &Device, words: usize) {
    device.buffer().words64().iter().take(words).for_each(|word| word.store(0, Ordering::Relaxed));
}

/// The calling thread is traced for as long as this value lives, each program counter once. Like a
/// [`Session`], it cannot leave its thread, and dropping it disables.
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct UniqueSession<'d> {
    device: &'d Device,
    /// The part of the buffer after the bitmap.
    trace: Buffer<'d>,
    bitmap_words: usize,
    this_thread: PhantomData<*mut ()>,
}

impl<'d> UniqueSession<'d> {
    /// Forgets the records and lets them be recorded again: clears the bitmap and the count.
    pub fn reset(&mut self) {
        clear(self.device, self.bitmap_words);
        self.reset_count();
    }

    /// Resets by a system call, whose end is recorded; see [`UniqueEnable::reset_trace`].
    ///
    /// # Errors
    ///
    /// - [`NotEnabled`](ErrorKind::NotEnabled): this thread is not the traced one.
    pub fn request_reset(&mut self) -> Result<(), Error> {
        request_reset(self.device)
    }

    /// Makes room without forgetting what was recorded: clears only the count.
    pub fn reset_count(&mut self) {
        self.trace.set_count(Width::W64, 0);
    }

    /// The records since the last reset.
    #[must_use]
    pub fn trace(&self) -> Trace<'_, TracePc> {
        Trace::freeze(self.trace, TracePc)
    }

    /// The words of the bitmap. Until reboot, a bit always stands for the same basic block.
    #[must_use]
    pub fn bitmap(&self) -> Words<'_> {
        self.device.buffer().words(Width::W64).first(self.bitmap_words)
    }

    /// Ends tracing and returns the records since the last reset.
    ///
    /// # Errors
    ///
    /// Same as [`Session::disable`].
    pub fn disable(self) -> Result<Trace<'d, TracePc>, Error> {
        let session = ManuallyDrop::new(self);
        session.end()?;
        Ok(Trace::freeze(session.trace, TracePc))
    }

    fn end(&self) -> Result<(), Error> {
        // Even a corrupt count: the trace is not to look empty.
        let count = self.trace.count(Width::W64);
        self.device.request_disable()?;
        self.trace.set_count(Width::W64, count);
        Ok(())
    }
}

impl Drop for UniqueSession<'_> {
    fn drop(&mut self) {
        // A failure means that the thread was no longer traced; a destructor cannot report it.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Kernel;
    use crate::pc::Pc;
    use crate::trace::Completeness;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_part_is_a_buffer_of_its_own() {
        let words = [9, 9, 1, 7, 8].map(AtomicU64::new);
        let whole = Buffer::from_words(&words);
        let trace = Trace::freeze(whole.after(2).unwrap(), TracePc);
        assert_eq!((trace.len(), trace.capacity()), (1, 2));
        assert_eq!(trace.get(0), Some(Pc::new(7)));
        assert!(whole.after(4).is_some());
        for words in [5, usize::MAX / 8, usize::MAX] {
            assert!(whole.after(words).is_none(), "{words}");
        }
    }
    #[test]
    fn a_corrupt_trace_stays_corrupt() {
        let mut device = Kernel::linux().builder().open().unwrap();
        std::mem::forget(device.enable(TracePc).unwrap());
        let (device, bitmap_words) = (&device, 8);
        let trace = device.buffer().after(bitmap_words).unwrap();
        trace.set_count(Width::W64, 1 << 40);
        let session = UniqueSession { device, trace, bitmap_words, this_thread: PhantomData };
        let completeness = session.disable().unwrap().completeness();
        assert_eq!(completeness, Completeness::Corrupt { count: 1 << 40 });
    }
}
