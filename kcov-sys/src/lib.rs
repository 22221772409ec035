//! Raw ABI of the kernel's kcov coverage device, as Linux and NetBSD define it.
//!
//! [`linux`] follows `<linux/kcov.h>` and [`netbsd`] follows `<sys/kcov.h>`, each in the order of
//! its header. Both compile on every host; nothing here makes a system call. Numbers that only the
//! drivers know (limits, record layouts) come last in each module and say where they stand.
//!
//! Every size, offset and number is asserted at compile time next to its definition. The tests
//! compare the Linux module with the machine's own header through a C compiler.
//!
//! # What this is not
//!
//! The user-space coverage tester named kcov has nothing to do with the kernel facility, and this
//! crate does not help with it. A safe API over these definitions is the crate `kcov`.
//!
//! # Kernels
#![doc = include_str!("../KERNELS")]
#![no_std]
#![forbid(unsafe_code)]

pub mod ioc;
pub mod linux;
pub mod netbsd;
