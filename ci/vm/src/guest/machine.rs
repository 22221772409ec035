//! A kernel, the machine that its target describes, and the command that boots it.

use crate::arch::{PC, Qemu};
use crate::target::{Accel, Kind, Target};
use kcov_vm_guest::job::Shutdown;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

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
const CMDLINE: &str = "rdinit=/init panic=-1";

impl Machine<'_> {
    /// The guest's memory, in MiB.
    fn mebibytes(&self) -> u32 {
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

/// The command that boots User-Mode Linux, which is a host program.
pub(super) fn uml(machine: &Machine<'_>, initramfs: &str, channel: i32) -> Command {
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

/// The command that boots Linux in QEMU: a machine with a console, a line for frames and nothing else.
pub(super) fn qemu(machine: &Machine<'_>, initramfs: &str, channel: i32) -> Command {
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
pub(super) fn netbsd(machine: &Machine<'_>, image: &str, channel: i32) -> Command {
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
