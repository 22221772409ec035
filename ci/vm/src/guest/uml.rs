//! User-Mode Linux: the kernel is a host program.

use super::machine::{CMDLINE, Machine};
use std::process::Command;

/// The command that boots the machine.
pub fn command(machine: &Machine<'_>, initramfs: &str, channel: i32) -> Command {
    let mut command = Command::new(&machine.kernel);
    command.arg(format!("mem={}M", machine.mebibytes()));
    // The kernel puts its memory there.
    command.envs(machine.memory.iter().map(|directory| ("TMPDIR", directory)));
    if machine.target.smp > 1 {
        command.arg(format!("ncpus={}", machine.target.smp));
    }
    command.arg(format!("initrd={initramfs}"));
    // Otherwise its run-time directory would stay in the home directory.
    // The usual root file system is a ramfs, which lacks much of what programs expect of one.
    command.args(["uml_dir=./", "root=/dev/ram", "rootfstype=tmpfs"]);
    let console = if machine.input { "con0=fd:0,fd:1" } else { "con0=null,fd:1" };
    command.args(["con=null", console, "ssl=null"]);
    command.arg(format!("ssl0=null,fd:{channel}"));
    command.args(CMDLINE.split(' '));
    command.args(machine.target.cmdline.split_whitespace());
    command.args(machine.words.split_whitespace());
    command.args(machine.ptrace.then_some("seccomp=off"));
    command.args(machine.input.then_some("quiet"));
    command
}
