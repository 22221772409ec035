//! The image that a guest boots: init, the job and its files.

use crate::carry::{self, Carried};
use crate::cpio::Archive;
use crate::elf;
use crate::error::{OrUnavailable as _, Phase, Result};
use crate::layout::Layout;
use crate::netbsd;
use crate::system::System;
use crate::target::{Kind, Target};
use kcov_vm_guest::job::{self, Job, Mount};
use object::elf::ELFCLASS32;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file for the guest.
#[derive(Clone, Debug)]
pub struct GuestFile {
    /// Its absolute path in the guest.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// The content.
    pub content: Vec<u8>,
}

/// The content of a guest's image.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// PID 1.
    pub init: &'a [u8],
    /// The job that init runs.
    pub job: &'a Job,
    /// The job's files.
    pub files: &'a [GuestFile],
    /// Files of the host.
    pub carried: &'a Carried,
}

/// The directories that every image has, beside /tmp. Parents come before their children.
const DIRECTORIES: &[&str] =
    &["/bin", "/dev", "/etc", "/home", "/root", "/sbin", "/usr", "/usr/bin", "/usr/sbin", "/var"];

/// Files that programs expect. Carried files replace them.
const FILES: &[(&str, &str)] = &[
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    ),
    ("/etc/resolv.conf", ""),
];

impl Image<'_> {
    /// Writes the image into `directory` in the form that the system boots.
    pub fn write(&self, system: System, directory: &Path, name: &str) -> Result<()> {
        let path = directory.join(name);
        match system {
            System::Linux => {
                fs::write(&path, self.initramfs()).or_unavailable(Phase::Image, path.display())
            }
            System::NetBsd => {
                netbsd::make_root(&path, directory, self.init, |root| self.lay_out(root, &[]))
            }
        }
    }

    fn initramfs(&self) -> Vec<u8> {
        let mut archive = Archive::default();
        self.lay_out(&mut archive, &["/proc", "/sys", "/run"]);
        // The kernel opens it for init before /dev is mounted.
        archive.character_device("/dev/console", 0o600, (5, 1));
        archive.file("/init", 0o755, self.init);
        archive.finish()
    }

    /// Adds the directories, the job and all files but init.
    pub(crate) fn lay_out(&self, image: &mut dyn Layout, directories: &[&str]) {
        let mut made = BTreeSet::from(["/tmp".to_string()]);
        image.directory("/tmp", 0o1777);
        for directory in DIRECTORIES.iter().chain(directories) {
            made.insert((*directory).to_string());
            image.directory(directory, 0o755);
        }
        self.carried.write(image, &mut made);
        for (path, content) in FILES {
            if self.carried.paths().all(|carried| carried != *path) {
                image.file(path, 0o644, content.as_bytes());
            }
        }
        for file in self.files {
            carry::ancestors(&file.path, image, &mut made);
            image.file(&file.path, file.mode, &file.content);
        }
        image.file(job::PATH, 0o600, self.job.encode().as_bytes());
    }
}

/// The file systems that init mounts.
pub(crate) fn mounts(system: System) -> Vec<Mount> {
    let linux = [
        ("devtmpfs", "/dev", false),
        ("proc", "/proc", false),
        ("sysfs", "/sys", false),
        ("debugfs", "/sys/kernel/debug", false),
        ("tmpfs", "/tmp", false),
        ("tmpfs", "/run", false),
        ("devpts", "/dev/pts", true),
    ];
    let table = match system {
        System::Linux => &linux[..],
        System::NetBsd => netbsd::MOUNTS,
    };
    table
        .iter()
        .map(|&(kind, target, optional)| Mount {
            kind: kind.into(),
            target: target.into(),
            optional,
        })
        .collect()
}

/// The default environment of a program.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    [("PATH", "/bin"), ("HOME", "/root"), ("TMPDIR", "/tmp"), ("LANG", "C")]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec()
}

/// Reads a host program for a guest, with the files that it needs on Linux. The
/// error says why a guest cannot run it.
pub fn program(path: &Path, target: &Target) -> std::result::Result<(Vec<u8>, Carried), String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let unfit = |why: String| format!("{} {why}", path.display());
    let mut carried = Carried::default();
    match target.kind.system() {
        System::Linux => {
            let loader = elf::loader(&bytes, target.arch).map_err(unfit)?;
            if target.kind == Kind::Uml && target.arch.name == "x86_64" && bytes[4] == ELFCLASS32 {
                let loader = loader.map_or(String::new(), |loader| format!(" (loader {loader})"));
                return Err(unfit(format!(
                    "is a 32-bit program{loader}, which {} cannot run; use linux-uml-i386 or \
                     linux-7-i386, or build it for x86_64",
                    target.name
                )));
            }
            if let Some(loader) = loader {
                carried.libraries_of(path, &loader)?;
            }
        }
        System::NetBsd => netbsd::unfit(&bytes).map_or(Ok(()), |why| Err(unfit(why.into())))?,
    }
    Ok((bytes, carried))
}

/// Makes a word that no other boot has.
pub fn nonce() -> String {
    let mut bytes = [0; 16];
    // The fallback is good enough: the nonce only guards against mistakes.
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        let time = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        bytes = time.as_nanos().to_le_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes the log directory of a run and removes those of old runs.
pub(crate) fn log_directory(root: &Path, target: &str) -> Result<PathBuf> {
    const KEPT: usize = 20;
    // A run of this age is over, whatever its time limit.
    const OLD: u128 = 24 * 60 * 60 * 1000;
    let own = root.join(target);
    fs::create_dir_all(&own).or_unavailable(Phase::Image, own.display())?;
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    let mut runs: Vec<(u128, PathBuf)> = fs::read_dir(&own)
        .or_unavailable(Phase::Image, own.display())?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let time = entry.file_name().to_str()?.split_once('-')?.0.parse().ok()?;
            Some((time, entry.path()))
        })
        .collect();
    runs.sort_unstable();
    for (time, path) in runs.iter().rev().skip(KEPT) {
        if time + OLD < now {
            let _ = fs::remove_dir_all(path);
        }
    }
    // Two guests of a target may begin in the same millisecond.
    let mut time = now;
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
