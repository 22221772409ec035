//! Safe access to kcov, the kernel's coverage device, on Linux and NetBSD.
//!
//! A thread opens the device, sizes and maps its buffer, and enables tracing of itself; from then
//! on the kernel records which program counters, or which comparisons, the system calls of the thread
//! go through. The two systems differ in ioctls, modes, limits and errors; this crate hides that at no
//! cost on the hot path.
//!
//! ```no_run
//! use kcov::{Device, mode::TracePc};
//!
//! # fn main() -> Result<(), kcov::Error> {
//! let mut device = Device::open()?;
//! let session = device.enable(TracePc)?;
//! let _ = std::fs::metadata("/");
//! for pc in session.disable()? {
//!     println!("{pc}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # If you know the kernel API
//!
//! | | Linux | NetBSD |
//! |---|---|---|
//! | [`Device::open`] | open, fstatfs, fstat, `KCOV_INIT_TRACE`, mmap | open, stat, fstat, `KCOV_IOC_SETBUFSIZE`, mmap |
//! | [`Device::enable`] | store 0 to word 0, `KCOV_ENABLE`, store 0 to word 0 | the same with `KCOV_IOC_ENABLE` |
//! | [`Session::reset`] | store 0 to word 0 | store 0 to entry 0 |
//! | [`Session::trace`] | load word 0 | load entry 0 |
//! | [`Session::disable`] | load word 0, `KCOV_DISABLE`, store word 0 | the same with `KCOV_IOC_DISABLE` |
//! | [`Device::enable_remote`] | as `enable`, with `KCOV_REMOTE_ENABLE` | |
//! | [`Device::attach`] | | `KCOV_IOC_REMOTE_ATTACH`, mmap |
//!
//! # What it does
//!
//! - Sizes in words or records, limits of each system, whole pages: [`BufferSize`].
//! - Modes as types, so that a buffer is not read as what it is not: [`mode`].
//! - A guard that disables, tied to its thread, which borrows its device or owns it: [`Session`].
//! - Devices that children fill: [`ChildBuffer`]; coverage of background work: [`remote`].
//! - A count that is read once, with full and corrupt buffers told apart: [`Trace`].
//! - Errors that say what to do: [`Error`]; what a machine can do: [`Modes::probe`].
//!
//! It installs no handlers, starts no threads (except a short one in [`Modes::probe`]), and its only
//! global state is the list of NetBSD's sources that the process is attached to. It does not turn
//! addresses into names; [`pc`] has the rules for those who do. It has nothing to do with the
//! user-space coverage tester that is also called kcov.
//!
//! # Features
//!
//! - `std`, on by default, is what opens devices. Without it the crate is `no_std` and has records and
//!   traces over words.
//! - `fake`: a kernel for tests, so that executors are tested without a kernel that has kcov.
//! - `pkeys`: buffers that are write-protected by a memory protection key of x86.
//! - `proposed`: modes that have been proposed for Linux. Not covered by the versions of this crate.
//!
//! The crate compiles for Linux and NetBSD on architectures that have 64-bit atomics, so not for
//! 32-bit PowerPC and MIPS; and elsewhere, where opening fails.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod buffer;
pub mod mode;
pub mod pc;
#[cfg(feature = "proposed")]
pub mod proposed;
mod record;
mod trace;

pub use buffer::Words;
pub use pc::Pc;
pub use record::{AnyRecord, Comparison};
pub use trace::{Completeness, Iter, Trace};

cfg_if::cfg_if! {
    if #[cfg(feature = "std")] {
        mod active;
        mod builder;
        mod child;
        mod device;
        mod error;
        #[cfg(feature = "fake")]
        pub mod fake;
        mod probe;
        #[cfg(feature = "pkeys")]
        mod protection;
        mod recover;
        pub mod remote;
        mod session;
        mod size;
        mod sys;
        mod system;

        pub use builder::Builder;
        pub use child::ChildBuffer;
        pub use device::Device;
        pub use error::{Error, ErrorKind, Operation};
        pub use probe::Modes;
        pub use session::{Refused, Session};
        pub use size::BufferSize;
    }
}
