//! A buffer that child processes fill.

use crate::device::Device;
use crate::error::Error;
use crate::mode::{Mode, SEAL};
use crate::owner::Owner;
use crate::session::Session;
use crate::trace::Trace;

/// A device whose buffer child processes fill, in one mode, and their parent reads.
///
/// The parent opens the device before the first fork and reads the trace when the child has ended;
/// a child that ends without disabling is disabled by the kernel. As with [`Session`], `D` is `&mut
/// Device` or [`Device`].
///
/// ```no_run
/// use kcov::{Device, mode::TracePc};
///
/// # fn fork() -> i32 { 0 } fn wait() {} fn end_at_once(_: i32) -> ! { loop {} }
/// let mut buffer = Device::open()?.into_child_buffer(TracePc)?;
/// for _ in 0..3 {
///     buffer.reset();
///     if fork() == 0 {
///         // A child must not return from here, or it continues as its parent. It ends with
///         // _exit(2): exit(3) would print what its parent has buffered.
///         let done = buffer.enable().map(|_session| {
///             // ... the system calls to trace ...
///         });
///         end_at_once(if done.is_ok() { 0 } else { 1 });
///     }
///     wait();
///     println!("{} records", buffer.trace()?.len());
/// }
/// # Ok::<(), kcov::Error>(())
/// ```
///
/// A forked child inherits the device and could enable it in another mode; the parent would then
/// misread the records. Let children enable only through this value, and wait for all of them before
/// you use its device in another mode. On Linux a child also inherits
/// the common handle of its parent's [remote session](crate::remote::linux), which then collects
/// from objects that the child sets up.
#[derive(Debug)]
pub struct ChildBuffer<M: Mode, D: Owner = Device> {
    device: D,
    mode: M,
}

impl<M: Mode, D: Owner> ChildBuffer<M, D> {
    /// Wraps an idle device with an empty buffer.
    pub(crate) fn new(device: D, mode: M) -> ChildBuffer<M, D> {
        ChildBuffer { device, mode }
    }

    /// In the parent: forgets the records. Then a child that dies before it enables leaves an empty
    /// trace, not its predecessor's.
    ///
    /// One store, no system call. It faults if a child has truncated the device; [`trace`] reports
    /// that, so reset before each child and give the device up after a failed `trace`.
    ///
    /// [`trace`]: Self::trace
    #[inline]
    pub fn reset(&mut self) {
        let buffer = self.device().buffer();
        buffer.set_count(self.mode.kind(SEAL).width(buffer.width()), 0);
    }

    /// In the parent: what the last child left. Wait for the child first.
    ///
    /// Before it looks at a page, it lets the kernel try to read it, because a child may have
    /// truncated the device. That takes ten system calls, and two more for each further 512 pages
    /// with records. It makes no request and changes nothing.
    ///
    /// # Errors
    ///
    /// - [`BufferLost`](crate::ErrorKind::BufferLost): the buffer can no longer be read.
    ///   [`Device::abandon`] the device and open another.
    /// - [`DescriptorOutOfLimits`](crate::ErrorKind::DescriptorOutOfLimits): the check needs two
    ///   descriptors for a moment.
    pub fn trace(&self) -> Result<Trace<'_, M>, Error> {
        let device = self.device();
        device.check_first(1)?;
        let trace = Trace::freeze(device.buffer(), self.mode);
        device.check_first(
            (trace.words().len() + 1) * self.mode.kind(SEAL).width(device.buffer().width()).bytes(),
        )?;
        Ok(trace)
    }

    /// The device that children enable.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.device.device(SEAL)
    }

    /// The mode in which children enable.
    #[inline]
    pub fn mode(&self) -> M {
        self.mode
    }

    /// Returns the device.
    #[must_use]
    pub fn into_device(self) -> D {
        self.device
    }

    /// In the child: starts tracing the calling thread, with an empty trace.
    ///
    /// Does not allocate, so it may follow a fork of a multithreaded process. Makes as many system
    /// calls as [`Device::enable`]. What the session gives back when it ends is not the device, which
    /// could be enabled in another mode.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable`].
    pub fn enable(&mut self) -> Result<Session<M, impl Owner>, Error> {
        self.device().begin_mode(self.mode)?;
        Ok(Session::enabled(&self.device, self.mode))
    }
}
