//! Systems without a kcov that this crate knows: everything compiles, opening fails.

use super::Key;
use crate::buffer::Width;
use crate::error::{ErrorKind, Operation, Row};
use crate::mode::AnyMode;
use crate::pc::Recorded;
use crate::remote::linux::MAX_HANDLES;
use kcov_sys::linux::kcov_remote_arg;
use kcov_sys::netbsd::kcov_ioc_remote_attach;
use std::path::Path;
use std::ptr::NonNull;

pub(crate) const DEFAULT_PATH: &str = "/dev/kcov";
pub(crate) const WIDTHS: &[Width] = &[Width::W64];
pub(crate) const WRONG_WIDTH: i32 = -1;

/// Nothing is recorded, or by a kernel that is not known here.
pub(crate) const RECORDED: Recorded = Recorded::Running;

/// What [`open`] fails with; no system call was made.
const NOT_SUPPORTED: i32 = 0;

/// There is no device, so none of its functions can be called.
#[derive(Debug)]
pub(crate) enum Device {}

#[derive(Debug)]
pub(crate) enum Mapping {}

impl Mapping {
    pub(crate) fn new(device: &Device, _: usize, _: usize) -> Result<Mapping, i32> {
        match *device {}
    }

    pub(crate) fn at(device: &Device, _: usize, _: u64) -> Result<Mapping, i32> {
        match *device {}
    }

    pub(crate) fn set_writable(&self, _: bool) -> Result<(), i32> {
        match *self {}
    }

    pub(crate) fn set_key(&mut self, _: Key) -> Result<(), i32> {
        match *self {}
    }

    pub(crate) fn cover(&self, _: Option<&Key>) -> Result<(), i32> {
        match *self {}
    }

    pub(crate) fn key(&self) -> Option<&Key> {
        match *self {}
    }

    pub(crate) fn shows(&self, _: &Device) -> Result<bool, i32> {
        match *self {}
    }

    pub(crate) fn renew(&self, _: &Device) -> Result<(), i32> {
        match *self {}
    }

    pub(crate) fn address(&self) -> NonNull<u64> {
        match *self {}
    }
}

pub(crate) fn page_size() -> usize {
    4096
}

pub(crate) fn limits(_: Width) -> (u64, u64) {
    (0, 0)
}

pub(crate) fn open(_: &Path) -> Result<Device, i32> {
    Err(NOT_SUPPORTED)
}

pub(crate) fn move_up(device: Device, _: i32) -> Result<Device, i32> {
    match device {}
}

#[derive(Debug, PartialEq)]
pub(crate) struct Identity;

pub(crate) fn put_in_place(_: &mut Device, device: Device) {
    match device {}
}

pub(crate) fn identity(device: &Device) -> Identity {
    match *device {}
}

pub(crate) fn set_size(device: &Device, _: Width, _: u64) -> Result<(), i32> {
    match *device {}
}

pub(crate) fn number(_: AnyMode) -> Option<u32> {
    None
}

pub(crate) fn enable(device: &Device, _: u32) -> Result<(), i32> {
    match *device {}
}

pub(crate) fn disable(device: &Device) -> Result<(), i32> {
    match *device {}
}

pub(crate) const INVALID: i32 = -1;
pub(crate) const HAS_REMOTE_HANDLES: bool = false;

pub(crate) fn enable_remote(device: &Device, _: &kcov_remote_arg<MAX_HANDLES>) -> Result<(), i32> {
    match *device {}
}

pub(crate) const HAS_PROPOSALS: bool = false;

pub(crate) fn enable_unique(device: &Device, _: usize) -> Result<(), i32> {
    match *device {}
}

pub(crate) fn reset_trace(device: &Device) -> Result<(), i32> {
    match *device {}
}

pub(crate) const HAS_SOURCES: bool = false;

pub(crate) fn attach(device: &Device, _: kcov_ioc_remote_attach) -> Result<(), i32> {
    match *device {}
}

pub(crate) fn detach(device: &Device) -> Result<(), i32> {
    match *device {}
}

pub(crate) fn explain_open(_: &Path, _: i32) -> Option<ErrorKind> {
    None
}

pub(crate) fn provoke() {}

pub(crate) const ERRORS: &[Row] = &[Row {
    operation: Operation::Open,
    errno: NOT_SUPPORTED,
    kind: ErrorKind::Unsupported,
    help: "run on Linux or NetBSD",
    source: "this crate",
}];
