//! Safe access to kcov, the kernel's coverage device, on Linux and NetBSD.
//!
//! A thread opens the device, sizes and maps its buffer, and enables tracing of itself. The kernel
//! then records the program counters, or the comparisons, that the thread's system calls execute.
//! The two systems differ in ioctls, modes, limits and errors; this crate hides that at no cost on
//! the hot path.
//!
//! # Two tasks
//!
//! Read the program counters of a system call:
//!
//! ```no_run
//! use kcov::{Device, mode::TracePc};
//!
//! let mut device = Device::open()?;
//! let session = device.enable(TracePc)?;
//! let _ = std::fs::metadata("/");
//! for pc in session.disable()?.trace().iter() {
//!     println!("{pc}");
//! }
//! # Ok::<(), kcov::Error>(())
//! ```
//!
//! Learn the values that the kernel looks for:
//!
//! ```no_run
//! use kcov::{Device, mode::TraceCmp};
//!
//! let mut device = Device::open()?;
//! let session = device.enable(TraceCmp)?;
//! let _ = std::fs::metadata("/magic");
//! let recorded = session.disable()?;
//! for comparison in recorded.trace().iter().filter(|comparison| comparison.is_const()) {
//!     println!("{:#x}", comparison.operands().0);
//! }
//! # Ok::<(), kcov::Error>(())
//! ```
//!
//! [`Session`] shows a loop, in which a reset costs one store.
//! [`ChildBuffer`] traces forked children, and [`remote`] collects from kernel threads.
//!
//! # If you know the kernel API
//!
//! | | Linux | NetBSD |
//! |---|---|---|
//! | [`Device::open`] | open, fstatfs, fstat, `KCOV_INIT_TRACE`, mmap | open, stat, `KCOV_IOC_SETBUFSIZE`, mmap |
//! | [`Device::enable`] | load word 0, `KCOV_ENABLE`, store 0 to word 0 | the same with `KCOV_IOC_ENABLE` |
//! | [`Session::reset`] | store 0 to word 0 | store 0 to entry 0 |
//! | [`Session::trace`] | load word 0 | load entry 0 |
//! | [`Session::disable`] | load word 0, `KCOV_DISABLE`, store word 0 | the same with `KCOV_IOC_DISABLE` |
//! | [`Device::enable_remote`] | store 0 to word 0, `KCOV_REMOTE_ENABLE`, store 0 to word 0 | |
//! | [`Device::attach`] | | `KCOV_IOC_REMOTE_ATTACH`, mmap |
//!
//! # What it does
//!
//! - Takes sizes in words or records, and handles limits and page rounding: [`BufferSize`].
//! - Makes each mode a type, so you cannot read a buffer in the wrong mode: [`mode`].
//! - Disables through a guard, tied to its thread, that borrows or owns the device: [`Session`].
//! - Lets children fill a buffer ([`ChildBuffer`]), and collects from background work ([`remote`]).
//! - Reads the count once, and tells full buffers from corrupt ones: [`Trace`].
//! - Reports errors that say what to do ([`Error`]), and probes the machine ([`Modes::probe`]).
//!
//! It installs no signal handlers and starts no threads, except a short-lived one in
//! [`Modes::probe`]. Its only global state is the list of NetBSD sources to which the process is
//! attached, and a count of remote sessions. It does not symbolize addresses; [`Pc`] has the rules if you do. It has nothing to do
//! with the user-space coverage tester that is also called kcov.
//!
//! # Features
//!
//! - `std` (default): opens devices. Without it the crate is `no_std` and only decodes records and
//!   traces from words.
//! - `fake`: a kernel for tests, to test executors without a kernel that has kcov.
//! - `proposed`: modes proposed for Linux. Semantic versioning does not cover them.
//!
//! The crate targets Linux and NetBSD on architectures with 64-bit atomics, so not 32-bit PowerPC
//! and MIPS. It compiles on other systems too, but opening a device fails there.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod buffer;
pub mod mode;
mod pc;
#[cfg(feature = "proposed")]
pub mod proposed;
mod record;
mod trace;

pub use buffer::Words;
pub use pc::{Arch, CallSite, Pc};
pub use record::{AnyRecord, Comparison};
pub use trace::{Completeness, Trace};

cfg_if::cfg_if! {
    if #[cfg(feature = "std")] {
        mod builder;
        mod child;
        mod device;
        mod error;
        #[cfg(feature = "fake")]
        pub mod fake;
        mod owner;
        mod probe;
        pub mod remote;
        mod session;
        mod size;
        mod sys;
        mod system;

        pub use builder::Builder;
        pub use child::ChildBuffer;
        pub use device::Device;
        pub use error::{Error, ErrorKind, Operation};
        #[doc(hidden)]
        pub use error::{ERRORS, Row};
        pub use probe::Modes;
        pub use owner::Owner;
        pub use session::{Recorded, Session};
        pub use size::BufferSize;
    }
}
