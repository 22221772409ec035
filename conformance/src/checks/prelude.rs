//! The vocabulary of checks.

#![allow(unused_imports, reason = "each system's checks use some of it")]

pub(crate) use super::setup::*;
pub(crate) use crate::check::{Check, Context, check, on_buffer, on_device, slow};
pub(crate) use crate::errno::{Errno, Result};
pub(crate) use crate::raw::*;
pub(crate) use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
pub(crate) use nix::fcntl::{FcntlArg, OFlag, fcntl};
pub(crate) use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
pub(crate) use nix::unistd::{dup2, pipe, read, write};
pub(crate) use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
pub(crate) use std::fs::File;
pub(crate) use std::io::{Read, Write};
pub(crate) use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
pub(crate) use std::os::unix::process::CommandExt;
pub(crate) use std::process::{Command, Stdio};
pub(crate) use std::sync::Mutex;
pub(crate) use std::time::{Duration, Instant};
