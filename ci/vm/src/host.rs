//! Checks the host for the programs that the runner needs, and installs them as root.

use crate::arch::{Arch, PC, Qemu};
use crate::error::{Error, Phase, Result, Unavailable};
use crate::progress::Step;
use crate::run::{command, locate, outliving, read};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;

/// The program that makes NetBSD's file systems.
pub(crate) const MAKEFS: &str = "makefs";
/// The program that makes discs that boot a kernel.
pub(crate) const MKRESCUE: &str = "grub-mkrescue";

/// A task that needs programs of the host.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// Building kernels.
    Build(&'static Arch),
    /// Building kernels that describe their types.
    Types,
    /// Linking programs for another architecture.
    Link(&'static Arch),
    /// Booting QEMU guests.
    Qemu(&'static Qemu),
    /// Booting NetBSD guests.
    Netbsd,
    /// Making a disc that boots a kernel.
    Grub,
}

impl Need {
    /// The programs that must be in `PATH`, and the Debian packages that provide them, and headers,
    /// which have no program to check.
    fn means(self) -> (Vec<&'static str>, Vec<&'static str>) {
        match self {
            Self::Build(arch) => {
                let mut programs: Vec<_> =
                    "make gcc ld flex bison bc tar xz patch".split(' ').collect();
                let mut packages: Vec<_> = "make gcc binutils libc6-dev flex bison bc libelf-dev \
                                            libssl-dev tar xz-utils patch"
                    .split(' ')
                    .collect();
                if !arch.is_host() {
                    programs.push(arch.compiler());
                    packages.extend(arch.cross_packages);
                }
                (programs, packages)
            }
            Self::Types => (vec!["pahole"], vec!["pahole"]),
            Self::Link(arch) => (vec![arch.compiler()], arch.cross_packages.to_vec()),
            Self::Qemu(qemu) => (vec![qemu.program], vec![qemu.package]),
            Self::Netbsd => {
                (vec![PC.program, MAKEFS, "ld"], vec![PC.package, "makefs", "binutils"])
            }
            Self::Grub => (
                vec![MKRESCUE, "xorriso", "mformat"],
                vec!["grub-common", "grub-pc-bin", "xorriso", "mtools"],
            ),
        }
    }

    fn phase(self) -> Phase {
        match self {
            Self::Build(_) | Self::Types => Phase::Build,
            Self::Link(_) | Self::Qemu(_) | Self::Netbsd | Self::Grub => Phase::Image,
        }
    }
}

/// Checks that everything needed is installed. As root on Debian the runner
/// installs missing packages; otherwise it lists them.
pub fn require(need: Need) -> Result<()> {
    let (mut programs, all) = need.means();
    programs.retain(|program| locate(program).is_none());
    let packages = missing_packages(&all);
    if programs.is_empty() && packages.as_ref().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    let fail = |what: String, packages: &[&'static str]| -> Error {
        let line = packages.join(" ");
        let line = format!("install with: apt-get install --no-install-recommends {line}");
        Unavailable::new(need.phase(), format!("{what} missing; {line}")).into()
    };
    match packages {
        // The packages are installed, but the programs are not in PATH.
        // Installing again would change nothing.
        Some(packages) if packages.is_empty() => {
            let what = format!("{} not in PATH:", programs.join(" "));
            Err(fail(what, &all))
        }
        Some(packages) if rustix::process::geteuid().is_root() => install(&packages)
            .map_err(|why| fail(format!("{why}; {}", packages.join(" ")), &packages)),
        Some(packages) => Err(fail(packages.join(" "), &packages)),
        None => Err(fail(programs.join(" "), &all)),
    }
}

/// Returns the packages that are not installed, or `None` without `dpkg-query`.
fn missing_packages(packages: &[&'static str]) -> Option<Vec<&'static str>> {
    let mut query = command("dpkg-query");
    // It fails for unknown names, which are missing as well.
    query.args(["--show", "--showformat=${Package} ${db:Status-Status}\n"]).args(packages);
    let output = query.output().ok()?;
    let listing = String::from_utf8_lossy(&output.stdout);
    let is_missing = |package: &&str| {
        !listing.lines().any(|line| line.split_once(' ') == Some((*package, "installed")))
    };
    Some(packages.iter().copied().filter(is_missing).collect())
}

fn install(packages: &[&str]) -> std::result::Result<(), String> {
    let list = packages.join(" ");
    let step = Step::begin(format!("install {list}"));
    // Two runners wait for each other, and apt for another installer. apt-get update waits for none.
    let lists = File::open("/var/lib/apt/lists");
    let _ = lists.as_ref().map(|lists| flock(lists, FlockOperation::LockExclusive));
    let apt = |words: &[&str]| {
        // Half an installation would be in the user's way.
        let mut apt = outliving("apt-get");
        apt.args(["-o", "DPkg::Lock::Timeout=600"]);
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(words);
        read(&mut apt).map(drop)
    };
    let words = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    // The package lists may be old or absent.
    apt(&words).or_else(|_| apt(&["update"]).and_then(|()| apt(&words)))?;
    step.done();
    Ok(())
}
