//! A kernel on the machine that its target describes.

use crate::target::{Kind, Target};
use kcov_vm_guest::job::Shutdown;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What executes the instructions of a QEMU guest.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Accel {
    /// The processor.
    Kvm,
    /// QEMU itself.
    Tcg,
}

/// A kernel file and the machine to boot it on.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// The target that says how.
    pub target: &'a Target,
    /// The kernel; an absolute path.
    pub kernel: PathBuf,
    /// What loads the kernel, where QEMU cannot do so by itself.
    pub disc: Option<PathBuf>,
    /// QEMU only.
    pub accel: Accel,
    /// Where its memory lies; User-Mode Linux only.
    pub memory: Option<PathBuf>,
    /// MiB that it has besides those of its target, for a large image.
    pub more_memory: u32,
}

/// A panic ends the guest instead of halting it, so nobody waits for nothing.
pub(super) const CMDLINE: &str = "rdinit=/init panic=-1";

impl Machine<'_> {
    /// Its memory, in MiB.
    pub(super) fn mebibytes(&self) -> u32 {
        self.target.memory.saturating_add(self.more_memory)
    }

    /// The device in the guest that carries the frames.
    pub fn channel(&self) -> &'static str {
        match self.target.kind {
            Kind::Uml => "/dev/ttyS0",
            Kind::Qemu => "/dev/ttyS1",
            Kind::Netbsd => "/dev/dty0*",
        }
    }

    /// How the guest ends the machine. Our x86 kernels have no ACPI, so they
    /// can restart only, and QEMU is told to take that for the end.
    pub fn shutdown(&self) -> Shutdown {
        match self.target.kind {
            Kind::Uml => Shutdown::PowerOff,
            Kind::Qemu => Shutdown::Restart,
            // Its USB code may panic on the way down.
            Kind::Netbsd => Shutdown::Wait,
        }
    }

    /// What executes the guest, in words.
    pub fn accelerator(&self) -> &'static str {
        match (self.target.kind, self.accel) {
            (Kind::Uml, _) => "host process",
            (_, Accel::Kvm) => "KVM",
            (_, Accel::Tcg) => "TCG",
        }
    }

    /// The command, to be run in `directory`, where the image lies. The
    /// console is its standard output, the channel its descriptor `channel`.
    pub(super) fn command(&self, directory: &Path, image: &str, channel: i32) -> Command {
        let mut command = match self.target.kind {
            Kind::Uml => super::uml::command(self, image, channel),
            Kind::Qemu => super::qemu::command(self, image, channel),
            Kind::Netbsd => super::netbsd::command(self, image, channel),
        };
        command.current_dir(directory);
        command
    }
}
