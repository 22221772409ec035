//! Safe access to the kernel's kcov coverage device on Linux and NetBSD.
//!
//! A thread opens the device, sizes and maps its buffer, and enables tracing of itself; from then
//! on the kernel records which program counters, or which comparisons, the thread's system calls
//! go through. The two systems have it with other requests, modes, limits and errors; here it is
//! one API, and nothing is added to what the hot path has to do anyway.
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
//! | [`Device::open`] | open, `KCOV_INIT_TRACE`, mmap | open, `KCOV_IOC_SETBUFSIZE`, mmap |
//! | [`Device::enable`] | `KCOV_ENABLE`, store 0 to word 0 | `KCOV_IOC_ENABLE`, store 0 to entry 0 |
//! | [`Session::reset`] | store 0 to word 0 | store 0 to entry 0 |
//! | [`Session::trace`] | load word 0 | load entry 0 |
//! | [`Session::disable`] | load word 0, `KCOV_DISABLE` | load entry 0, `KCOV_IOC_DISABLE` |
//! | [`Device::enable_remote`] | store 0 to word 0, `KCOV_REMOTE_ENABLE` | |
//! | [`Device::attach`] | | `KCOV_IOC_REMOTE_ATTACH`, mmap |
//!
//! # What it does
//!
//! - sizes in words or records, limits of each system, pages: [`BufferSize`];
//! - modes as types, so that a buffer cannot be read as what it is not: [`mode`];
//! - a guard that disables, tied to its thread: [`Session`];
//! - a count that is read once, before the disabling call is recorded, and clamped: [`Trace`];
//! - full buffers shown as such: [`Trace::is_truncated`];
//! - errors that say what to do: [`Error`]; and what a machine can do at all: [`Status`].
//!
//! # What it does not do
//!
//! - It starts no threads (but for a short one in [`Status::probe`]), installs no handlers and keeps
//!   no global state.
//! - It does not turn addresses into names; [`pc`] has the rules for those who do.
//! - It has nothing to do with the user-space coverage tester that is also called kcov.
//!
//! # Features
//!
//! `std`, on by default, is what opens devices. Without it the crate is `no_std` with `alloc` and
//! has records and traces over words.
//!
//! What a fuzzer does with traces, such as asking whether anything is new, is the crate
//! `kcov-signal`.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

mod buffer;
pub mod mode;
pub mod pc;
pub mod proposed;
mod record;
mod trace;

pub use pc::Pc;
pub use record::{AnyRecord, Comparison};
pub use trace::{Iter, Trace, Words};

cfg_if::cfg_if! {
    if #[cfg(feature = "std")] {
        mod builder;
        mod device;
        mod error;
        mod recovery;
        pub mod remote;
        mod session;
        mod size;
        mod status;
        mod sys;

        pub use builder::Builder;
        pub use device::Device;
        pub use error::{Error, ErrorKind, Operation};
        pub use recovery::Recovered;
        pub use session::{ForkServer, Session};
        pub use size::{BufferSize, limits};
        pub use status::{Modes, Status};
    }
}
