//! NetBSD/amd64: the same PC, with its root on a virtio disk.

use super::machine::Machine;
use crate::arch::PC;
use std::process::Command;

/// The command that boots the machine.
pub fn command(machine: &Machine<'_>, image: &str, channel: i32) -> Command {
    let mut command = super::qemu::bare(machine, &PC, "qemu64", channel);
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
