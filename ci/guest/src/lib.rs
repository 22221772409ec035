//! What the two sides of a guest have to agree on.
//!
//! The host (`kcov-vm`) boots a kernel with `kcov-vm-init` as PID 1. It hands
//! over a [job] with the image and reads [frames](protocol) from a
//! serial line. Nothing here knows what the program does.

pub mod escape;
pub mod job;
pub mod protocol;
pub mod sys;
