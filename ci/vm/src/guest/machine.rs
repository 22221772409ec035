//! A kernel and the machine that its target describes.

use crate::target::{Accel, Kind, Target};
use kcov_vm_guest::job::Shutdown;
use std::path::PathBuf;

/// A kernel file and the machine to boot it on.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// The target.
    pub target: &'a Target,
    /// The kernel's absolute path.
    pub kernel: PathBuf,
    /// The boot disc, for a kernel that QEMU cannot load.
    pub disc: Option<PathBuf>,
    /// For QEMU only.
    pub accel: Accel,
    /// The directory for the guest's memory as a file. QEMU does without, unless it is set.
    pub memory: Option<PathBuf>,
    /// Whether User-Mode Linux uses ptrace(2) instead of seccomp filters, which is slower.
    pub ptrace: bool,
    /// MiB in addition to the target's memory, for a large image.
    pub more_memory: u32,
    /// Whether the console takes this process's standard input.
    pub input: bool,
    /// More words for the kernel's command line.
    pub words: &'static str,
}

/// After a panic the guest must end. By default it would halt, and the runner
/// would wait for the time limit.
pub(super) const CMDLINE: &str = "rdinit=/init panic=-1";

impl Machine<'_> {
    /// The guest's memory, in MiB.
    pub(super) fn mebibytes(&self) -> u32 {
        self.target.memory.saturating_add(self.more_memory)
    }

    /// The guest's device that carries the frames.
    pub fn channel(&self) -> String {
        match self.target.kind {
            Kind::Uml => "/dev/ttyS0".into(),
            Kind::Qemu => format!("/dev/{}", self.target.arch.qemu.devices[1]),
            Kind::Netbsd => "/dev/dty0*".into(),
        }
    }

    /// The guest's device for the console, if a program can use it as its terminal.
    pub fn terminal(&self) -> Option<String> {
        match self.target.kind {
            Kind::Uml => Some("/dev/tty0".into()),
            Kind::Qemu => Some(format!("/dev/{}", self.target.arch.qemu.devices[0])),
            Kind::Netbsd => None,
        }
    }

    /// How the guest ends the machine. Our x86 kernels have no ACPI, so they
    /// can only restart; QEMU exits on a restart.
    pub fn shutdown(&self) -> Shutdown {
        match self.target.kind {
            Kind::Uml => Shutdown::PowerOff,
            Kind::Qemu => Shutdown::Restart,
            // Its USB code may panic during shutdown.
            Kind::Netbsd => Shutdown::Wait,
        }
    }

    /// Names the accelerator, for messages.
    pub fn accelerator(&self) -> &'static str {
        match (self.target.kind, self.accel) {
            (Kind::Uml, _) => "host process",
            (_, Accel::Kvm) => "KVM",
            (_, Accel::Tcg) => "TCG",
            (_, Accel::Icount) => "TCG, counting instructions",
        }
    }
}
