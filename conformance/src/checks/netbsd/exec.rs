//! Executing another program, which inherits the descriptor. That program is this one, see
//! [`crate::helper`].

use super::{EXEC_WORDS, mapped_of};
use crate::check::{Context, checks};
use crate::kernel::this_program;
use crate::raw::KCOV_TRACE_PC;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

checks! {
    new_program_can_disable,
}

fn new_program_can_disable(cx: &Context) {
    let (device, map) = mapped_of(cx, EXEC_WORDS);
    fcntl(&device, FcntlArg::F_SETFD(FdFlag::empty())).expect("F_SETFD");
    let inherited = device.as_raw_fd().to_string();
    let mut command = Command::new(this_program().expect("this program"));
    command.args(["helper", "--disable", &inherited]).stdin(Stdio::null()).stdout(Stdio::null());
    let enabled = device.duplicate().expect("a duplicate");
    let enable = move || {
        let enabled = enabled.enable(KCOV_TRACE_PC);
        enabled.map_err(|errno| std::io::Error::from_raw_os_error(errno.0))
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(enable) };
    let status = command.status().expect("a child");
    assert!(status.success(), "the new program disables: {status}");
    assert!(map.count() > 0, "the child was traced");
}
