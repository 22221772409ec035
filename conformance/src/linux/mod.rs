//! What the suite has of its own for Linux: checks, the calls and probes that they use, and the
//! operations of lockstep. Every system exports the same names.

pub(crate) mod checks;
pub(crate) mod lockstep;
pub(crate) mod raw;
