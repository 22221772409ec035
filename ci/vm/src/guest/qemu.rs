//! QEMU: a machine with a console, a line for frames and nothing else.

use super::machine::{CMDLINE, Machine};
use crate::arch::{PC, Qemu};
use crate::target::Accel;
use std::ffi::OsString;
use std::process::Command;

/// The command that boots the machine.
pub fn command(machine: &Machine<'_>, initramfs: &str, channel: i32) -> Command {
    let qemu = machine.target.arch.qemu;
    let mut command = bare(machine, qemu, qemu.cpu, channel);
    command.arg("-kernel").arg(&machine.kernel).args(["-initrd", initramfs]);
    let Qemu { devices: [console, _], cmdline, .. } = qemu;
    let quiet = if machine.input { "quiet" } else { "" };
    let own = format!("console={console} {cmdline} {CMDLINE} {quiet}");
    command.args(["-append", &format!("{own} {} {}", machine.target.cmdline, machine.words)]);
    command
}

/// The command that boots the same PC for NetBSD, with its root on a virtio disk.
pub fn netbsd(machine: &Machine<'_>, image: &str, channel: i32) -> Command {
    let mut command = bare(machine, &PC, "qemu64", channel);
    command.args(["-drive", &format!("file={image},if=none,id=root,format=raw")]);
    match &machine.disc {
        None => {
            command.args(["-device", "virtio-blk-pci,drive=root"]);
            command.arg("-kernel").arg(&machine.kernel);
            command.args(["-append", "console=com root=ld0a"]);
        }
        // Kernels of that age know only legacy virtio.
        Some(disc) => {
            command.args(["-device", "virtio-blk-pci,drive=root,disable-modern=on"]);
            command.arg("-cdrom").arg(disc).args(["-boot", "d"]);
        }
    }
    command
}

/// The machine without a kernel. `cpu` is the processor model without KVM.
fn bare(machine: &Machine<'_>, qemu: &Qemu, cpu: &str, channel: i32) -> Command {
    let memory = machine.mebibytes().next_multiple_of(qemu.memory_unit);
    let smp = machine.target.smp;
    let (accel, cpu) = match machine.accel {
        Accel::Kvm => ("kvm", "host"),
        Accel::Tcg | Accel::Icount => ("tcg", cpu),
    };
    let mut command = Command::new(qemu.program);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    command.args(["-machine", qemu.machine, "-accel", accel, "-cpu", cpu]);
    if machine.accel == Accel::Icount {
        // An idle guest does not wait for the host's time to pass.
        command.args(["-icount", "shift=0,sleep=off"]);
    }
    command.args(["-m", &format!("{memory}M")]);
    if let Some(directory) = &machine.memory {
        let file = format!("memory-backend-file,id=ram,size={memory}M,share=on,mem-path=");
        let mut file = OsString::from(file);
        file.push(directory);
        command.arg("-object").arg(file).args(["-machine", "memory-backend=ram"]);
    }
    // Without ACPI, the firmware can describe only sockets.
    command.args(["-smp", &format!("{smp},sockets={smp},cores=1,threads=1")]);
    let console = match machine.input {
        true => "stdio,id=console,signal=off",
        false => "file,id=console,path=/dev/fd/1",
    };
    command.args(["-chardev", console, "-serial", "chardev:console"]);
    command.args(["-chardev", &format!("file,id=channel,path=/dev/fd/{channel}")]);
    command.args(qemu.line);
    command
}
