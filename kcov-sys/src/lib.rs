//! Raw ABI of the kernel's kcov coverage device on Linux and NetBSD.
//!
//! [`linux`] follows `<linux/kcov.h>` and [`netbsd`] follows `<sys/kcov.h>`, each in the order of
//! its header. Both modules compile on every host; nothing here makes a system call. Numbers that
//! only the drivers define (limits, record layouts) come last in each module, with their source.
//!
//! Compile-time assertions next to each definition check sizes, offsets and numbers. The tests
//! compare the Linux module with the machine's own header through a C compiler.
//!
//! # What this is not
//!
//! This crate has nothing to do with the user-space coverage tester that is also called kcov. For a
//! safe API over these definitions, use the crate `kcov`.
//!
//! # Features
//!
//! - `proposed`: the module `linux::proposed`, with the numbers of proposals for Linux that no
//!   released kernel has. Semantic versioning does not cover it.
//!
//! # Kernels
#![doc = include_str!("../KERNELS")]
#![no_std]
#![forbid(unsafe_code)]

pub mod arch;
pub mod errno;
pub mod ioc;
pub mod linux;
pub mod netbsd;
