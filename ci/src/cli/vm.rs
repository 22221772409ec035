//! How kernels are built and booted.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options for building kernels.
#[derive(Args, Debug, Default)]
pub struct BuildOptions {
    /// Build from this kernel tree or tarball instead of the target's package
    #[arg(long, value_name = "DIR|TARBALL")]
    pub source: Option<PathBuf>,
    /// Look for a newer package now, not once a day
    #[arg(long, conflicts_with = "source")]
    pub refresh: bool,
    /// Jobs for make [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
}

/// Options for booting kernels.
#[derive(Args, Debug)]
pub struct GuestOptions {
    /// Boot this kernel; nothing is built
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "refresh", "jobs"])]
    pub kernel: Option<PathBuf>,
    /// The same for netbsd targets only, and so for --all [default:
    /// $KCOV_VM_NETBSD_KERNEL]
    #[arg(long, value_name = "FILE")]
    pub netbsd_kernel: Option<PathBuf>,
    /// usr/lib of NetBSD's comp set, or a directory with that or with the
    /// packed set in it: what programs for netbsd targets are linked against
    /// [default: $KCOV_VM_NETBSD_SYSROOT]
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Which ABI a netbsd target's kernel has [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    pub abi: Option<String>,
    /// More words for the suite on what a kernel of yours has, comma-separated
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub declare: Vec<String>,
    /// What the kernel's release must begin with, instead of what the target
    /// says
    #[arg(long, value_name = "PREFIX")]
    pub declare_release: Option<String>,
    /// Limit booting, and then the program, to so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// What executes QEMU guests; `auto` boots one under KVM to find out
    #[arg(long, value_enum, default_value_t, value_name = "ACCEL")]
    pub accel: AccelChoice,
}

/// What executes QEMU guests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum AccelChoice {
    /// KVM if guests boot under it.
    #[default]
    Auto,
    /// The processor.
    Kvm,
    /// QEMU.
    Tcg,
}

/// Options for both.
#[derive(Args, Debug)]
pub struct VmOptions {
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
    /// How to boot.
    #[command(flatten)]
    pub guest: GuestOptions,
}
