//! Options for building and booting kernels.

use crate::target::Accel;
use clap::Args;
use std::path::PathBuf;

/// Options for building kernels.
#[derive(Args, Clone, Debug, Default)]
pub struct BuildOptions {
    /// Build from this kernel tree instead of the target's package
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// Build with these kernel options, too: a file of lines CONFIG_X=y, or one of bpf, bridge,
    /// cgroup, coredump, fuse, loop, overlay. May be repeated
    #[arg(long, value_name = "FILE|NAME")]
    pub config: Vec<PathBuf>,
}

/// Options that describe a user's kernel.
#[derive(Args, Clone, Debug, Default)]
pub struct OwnOptions {
    /// The libraries to link programs for netbsd targets against: usr/lib of NetBSD's comp set, or
    /// a directory that contains it or the packed set [default: $KCOV_VM_NETBSD_SYSROOT]
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// The ABI of a netbsd target's kernel [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    pub abi: Option<String>,
    /// Declare more features of your own kernel to the suite; comma-separated words
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub declare: Vec<String>,
    /// The required beginning of the kernel's release, instead of the target's
    #[arg(long, value_name = "PREFIX")]
    pub declare_release: Option<String>,
}

/// Options for booting kernels.
#[derive(Args, Debug, Default)]
pub struct GuestOptions {
    /// Boot this kernel; build nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "config"])]
    pub kernel: Option<PathBuf>,
    /// Boot this kernel on netbsd targets only; works with --all [default: $KCOV_VM_NETBSD_KERNEL]
    #[arg(long, value_name = "FILE")]
    pub netbsd_kernel: Option<PathBuf>,
    /// The kernel's description.
    #[command(flatten)]
    pub own: OwnOptions,
    /// Limit booting to N seconds, and then the program as well
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// The guest's memory in MiB instead of the target's
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(64..))]
    pub memory: Option<u32>,
    /// The guest's processors instead of the target's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub smp: Option<u32>,
    /// How to run QEMU guests [default: KVM if a guest boots under it, else TCG]
    #[arg(long, value_enum, value_name = "ACCEL")]
    pub accel: Option<Accel>,
}

/// Build and boot options.
#[derive(Args, Debug, Default)]
pub struct VmOptions {
    /// Build options.
    #[command(flatten)]
    pub build: BuildOptions,
    /// Boot options.
    #[command(flatten)]
    pub guest: GuestOptions,
}
