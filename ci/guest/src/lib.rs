//! The protocol between the host and the guest.
//!
//! The host (`kcov-vm`) boots a kernel with `kcov-vm-init` as PID 1. It passes
//! a [job] with the image and reads [frames](protocol) from a serial line.
//! Nothing here knows the program's purpose.

pub mod fuzz;
pub mod job;
pub mod protocol;
pub mod sources;
pub mod sys;
