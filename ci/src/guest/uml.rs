//! User-Mode Linux: the kernel is the program.

use super::machine::{CMDLINE, Machine};
use std::process::Command;

/// The command that boots the machine.
pub fn command(machine: &Machine<'_>, initramfs: &str, channel: i32) -> Command {
    let mut command = Command::new(&machine.kernel);
    command.arg(format!("mem={}M", machine.mebibytes()));
    // The kernel takes it for where its memory is to lie.
    command.envs(machine.memory.iter().map(|directory| ("TMPDIR", directory)));
    if machine.target.smp > 1 {
        command.arg(format!("ncpus={}", machine.target.smp));
    }
    command.arg(format!("initrd={initramfs}"));
    // Its run-time directory would be left below the home directory.
    command.args(["uml_dir=./", "root=/dev/ram"]);
    command.args(["con=null", "con0=null,fd:1", "ssl=null"]);
    command.arg(format!("ssl0=null,fd:{channel}"));
    command.args(CMDLINE.split(' '));
    command.args(machine.target.cmdline.split_whitespace());
    command
}
