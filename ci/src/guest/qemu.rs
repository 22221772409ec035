//! QEMU: an old-fashioned PC with two serial lines and nothing else.

use super::machine::{Accel, CMDLINE, Machine};
use std::process::Command;

/// The name of the program.
pub const QEMU: &str = "qemu-system-x86_64";

/// The command that boots the machine.
pub fn command(machine: &Machine<'_>, initramfs: &str, channel: i32) -> Command {
    let mut command = bare(machine, "max", channel);
    command.arg("-kernel").arg(&machine.kernel).args(["-initrd", initramfs]);
    command.args(["-append", &format!("console=ttyS0 {CMDLINE} {}", machine.target.cmdline)]);
    command
}

/// The machine without anything to boot. `cpu` is for when no processor of the
/// host's executes it.
pub fn bare(machine: &Machine<'_>, cpu: &str, channel: i32) -> Command {
    let (memory, smp) = (machine.mebibytes(), machine.target.smp);
    let (accel, cpu) = match machine.accel {
        Accel::Kvm => ("kvm", "host"),
        Accel::Tcg => ("tcg", cpu),
    };
    let mut command = Command::new(QEMU);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    command.args(["-machine", "pc", "-accel", accel, "-cpu", cpu]);
    command.args(["-m", &format!("{memory}M")]);
    // Without ACPI, the firmware tells a kernel about sockets only.
    command.args(["-smp", &format!("{smp},sockets={smp},cores=1,threads=1")]);
    command.args(["-chardev", "file,id=console,path=/dev/fd/1", "-serial", "chardev:console"]);
    command.args(["-chardev", &format!("file,id=channel,path=/dev/fd/{channel}")]);
    command.args(["-serial", "chardev:channel"]);
    command
}
