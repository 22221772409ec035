//! Executing another program that inherits the file descriptor. That program is this one; see
//! [`crate::helper`].

use super::{EXEC_WORDS, mapped_of};
use crate::check::{Context, checks};
use crate::checks::shared::exec::traced_helper;
use crate::raw::KCOV_TRACE_PC;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::os::fd::AsRawFd as _;
use std::process::Stdio;

checks! {
    "exec.new-program-can-disable": new_program_can_disable,
}

fn new_program_can_disable(cx: &Context) {
    let (device, map) = mapped_of(cx, EXEC_WORDS);
    fcntl(&device, FcntlArg::F_SETFD(FdFlag::empty())).expect("F_SETFD");
    let inherited = device.as_raw_fd().to_string();
    let mut command = traced_helper(&device, KCOV_TRACE_PC);
    command.args(["--disable", &inherited]).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().expect("a child");
    assert!(status.success(), "the new program disables: {status}");
    assert!(map.count() > 0, "the child was traced");
}
