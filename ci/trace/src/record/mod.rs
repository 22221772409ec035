//! Collects coverage with a debugger that makes each thread enable kcov for itself.
//!
//! The kernel traces single threads, and children do not inherit it. The first thread enables kcov
//! before it starts the command, and stays traced across exec(2). The debugger stops every later
//! thread and process before it runs. It makes the thread fetch a file descriptor of a device that
//! is open and mapped here (pidfd_getfd(2)), enable the device and close the descriptor again. The
//! command needs no library for this, and finds no file descriptor and no memory of it.
//!
//! The debugger itself enables remote coverage with a handle, which the command inherits. So it
//! also gets what the kernel's workers do for the command.

mod devices;
mod inject;
mod tracer;

pub use tracer::run;

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// By itself, with this status as a shell reports it.
    ByItself(u8),
    /// The limit of so many seconds ended it.
    AtLimit(u32),
}
