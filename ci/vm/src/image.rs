//! The image that a guest boots: init, the job and its files.

use crate::carry::{Access, Carried, Entry};
use crate::cpio::Archive;
use crate::elf::{self, Linked};
use crate::error::{OrUnavailable as _, Phase, Result};
use crate::netbsd;
use crate::system::System;
use crate::target::{Kind, Target};
use kcov_vm_guest::job::{self, Job, Mount};
use object::elf::ELFCLASS32;
use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The type of a character device in a mode.
const CHARACTER_DEVICE: u32 = 0o020_000;

/// The content of a guest's image.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// PID 1.
    pub init: &'a [u8],
    /// The job that init runs.
    pub job: &'a Job,
    /// The program and its files.
    pub carried: &'a Carried,
}

/// The directories that every image has, by their permissions.
const DIRECTORIES: &[(u32, &str)] = &[
    (
        0o755,
        "/bin /dev /etc /home /media /mnt /opt /sbin /srv /usr/bin /usr/lib /usr/local/bin \
         /usr/sbin /usr/share /var/cache /var/lib /var/log /var/spool",
    ),
    (0o700, "/root"),
    (0o1777, "/tmp /var/tmp"),
];

/// The same for Linux.
const LINUX: &[(u32, &str)] = &[(0o555, "/proc /sys"), (0o755, "/run")];

/// Files that programs expect. Carried files replace them.
const FILES: &[(&str, &str)] = &[
    ("/etc/fstab", ""),
    ("/etc/group", "root:x:0:\ntty:x:5:\ndisk:x:6:\nmail:x:8:\nusers:x:100:\nnogroup:x:65534:\n"),
    ("/etc/hostname", "kcov-vm\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 kcov-vm\n::1 localhost\n"),
    ("/etc/machine-id", "6b636f76766d00000000000000000001\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    ),
    ("/etc/protocols", "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\n"),
    ("/etc/resolv.conf", ""),
    ("/etc/shells", "/bin/sh\n"),
];

/// Files that describe the system, as this machine has them. Its libraries are the guest's.
const SAME: &[&str] = &["/etc/localtime", "/etc/os-release", "/etc/protocols", "/etc/services"];

/// Links that programs expect on Linux.
const LINKS: &[(&str, &str)] = &[
    ("/etc/mtab", "/proc/self/mounts"),
    ("/var/lib/dbus/machine-id", "/etc/machine-id"),
    ("/var/lock", "/run/lock"),
    ("/var/run", "/run"),
];

impl Image<'_> {
    /// Writes the image into `directory` in the form that the system boots.
    pub fn write(&self, system: System, directory: &Path, name: &str) -> Result<()> {
        let path = directory.join(name);
        let mut files = self.carried.clone();
        if system == System::Linux {
            furnish(&mut files);
        }
        put_directories(&mut files, DIRECTORIES);
        for (path, content) in FILES {
            let entry = Entry::File(Access::root(0o644), content.as_bytes().into());
            files.put_new(Path::new(path), entry);
        }
        let job = self.job.encode().into_bytes();
        files.file(Path::new(job::PATH), Access::root(0o600), job.into());
        let init = match system {
            System::Linux => "/init",
            System::NetBsd => "/sbin/init",
        };
        files.file(Path::new(init), Access::root(0o755), self.init.into());
        match system {
            System::Linux => {
                let mut archive = Archive::default();
                files.entries().for_each(|(path, entry)| archive.add(path, entry));
                fs::write(&path, archive.finish()).or_unavailable(Phase::Image, path.display())
            }
            System::NetBsd => netbsd::make_root(&path, directory, &files),
        }
    }
}

/// Adds what programs expect on Linux.
fn furnish(files: &mut Carried) {
    put_directories(files, LINUX);
    for path in SAME.iter().map(Path::new) {
        // A machine without it is like a guest without it.
        if let Ok(content) = fs::read(path) {
            files.put_new(path, Entry::File(Access::root(0o644), content.into()));
        }
    }
    for (path, to) in LINKS {
        files.put_new(Path::new(path), Entry::Link(to.into()));
    }
    // The kernel opens it for init before /dev is mounted.
    let console = Entry::Special(Access::root(CHARACTER_DEVICE | 0o600), (5, 1));
    files.put(Path::new("/dev/console"), console);
}

fn put_directories(files: &mut Carried, all: &[(u32, &str)]) {
    for (mode, paths) in all {
        for path in paths.split(' ') {
            files.put_new(Path::new(path), Entry::Directory(Access::root(*mode)));
        }
    }
}

/// The file systems that init mounts: type, mount point, options, and whether a program can run
/// without it.
pub(crate) fn mounts(system: System) -> Vec<Mount> {
    let linux = [
        ("devtmpfs", "/dev", "mode=755", false),
        ("proc", "/proc", "", false),
        ("sysfs", "/sys", "", false),
        ("debugfs", "/sys/kernel/debug", "", false),
        ("tmpfs", "/tmp", "mode=1777", false),
        ("tmpfs", "/run", "mode=755", false),
        ("tmpfs", "/dev/shm", "mode=1777", false),
        ("devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666", true),
        ("mqueue", "/dev/mqueue", "", true),
        ("hugetlbfs", "/dev/hugepages", "", true),
        ("binfmt_misc", "/proc/sys/fs/binfmt_misc", "", true),
        ("bpf", "/sys/fs/bpf", "mode=700", true),
        ("cgroup2", "/sys/fs/cgroup", "", true),
        ("configfs", "/sys/kernel/config", "", true),
        ("fusectl", "/sys/fs/fuse/connections", "", true),
        ("securityfs", "/sys/kernel/security", "", true),
        ("tracefs", "/sys/kernel/tracing", "", true),
    ];
    let table = match system {
        System::Linux => &linux[..],
        System::NetBsd => netbsd::MOUNTS,
    };
    table
        .iter()
        .map(|&(kind, target, options, optional)| Mount {
            kind: kind.into(),
            target: target.into(),
            options: options.into(),
            optional,
        })
        .collect()
}

/// The default environment of a program.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    [("PATH", PATH), ("HOME", "/root"), ("TMPDIR", "/tmp"), ("LANG", "C")]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec()
}

/// Takes a host program for a guest, with the files that it needs on Linux. The error says why a
/// guest cannot run it.
pub fn program(
    path: &Path,
    target: &Target,
    variables: Vec<(OsString, OsString)>,
) -> std::result::Result<Carried, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let unfit = |why: String| format!("{} {why}", path.display());
    let mut carried = match target.kind.system() {
        System::Linux => {
            let linked = elf::linked(&bytes, target.arch).map_err(unfit)?;
            if target.kind == Kind::Uml && target.arch.name == "x86_64" && bytes[4] == ELFCLASS32 {
                let loader = match linked {
                    Linked::By(loader) => format!(" (loader {loader})"),
                    _ => String::new(),
                };
                return Err(unfit(format!(
                    "is a 32-bit program{loader}, which {} cannot run; use linux-uml-i386 or \
                     linux-7-i386, or build it for x86_64",
                    target.name
                )));
            }
            Carried::linux(target.arch, variables)
        }
        System::NetBsd => {
            netbsd::unfit(&bytes).map_or(Ok(()), |why| Err(unfit(why.into())))?;
            Carried::default()
        }
    };
    carried.add(path)?;
    Ok(carried)
}

/// A random number. It need not be hard to guess.
pub fn random() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(SystemTime::now()));
    half() << 64 | half()
}

/// Makes a word that no other boot has.
pub fn nonce() -> String {
    format!("{:032x}", random())
}

/// Makes the log directory of a run.
pub(crate) fn log_directory(root: &Path, target: &str) -> Result<PathBuf> {
    let own = root.join(target);
    fs::create_dir_all(&own).or_unavailable(Phase::Image, own.display())?;
    let mut time = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    // Two guests of a target may begin in the same millisecond.
    loop {
        let path = own.join(format!("{time}-{}", std::process::id()));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => time += 1,
            result => {
                result.or_unavailable(Phase::Image, path.display())?;
                return Ok(path);
            }
        }
    }
}
