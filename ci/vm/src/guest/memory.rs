//! Chooses the directory for User-Mode Linux's memory, a file that it maps executable.

use crate::error::{Error, Phase, Result};
use crate::parallel::processors;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::path::{Path, PathBuf};

/// The kernel's own default.
const USUAL: &str = "/dev/shm";

/// Finds a directory for guests of `mebibytes` each: TMPDIR if it is set, then /dev/shm, /tmp and
/// `last`, a directory on a disk. In many containers the default forbids programs or has only
/// 64 MiB. Also returns why it is not the first one.
pub fn place(mebibytes: u32, last: &Path) -> Result<(PathBuf, Option<String>)> {
    let named = std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
    let bytes = (u64::from(mebibytes) << 20).saturating_mul(processors() as u64);
    let usual = [Path::new(USUAL), Path::new("/tmp"), last];
    let candidates = named.as_deref().map(Path::new).into_iter().chain(usual);
    let mut refused = Vec::new();
    for directory in candidates {
        match refusal(directory, bytes) {
            None => {
                let why = (!refused.is_empty()).then(|| refused.join(", "));
                return Ok((directory.to_path_buf(), why));
            }
            Some(why) => refused.push(format!("{} {why}", directory.display())),
        }
    }
    let why = "no place for the memory of User-Mode Linux: set TMPDIR to a directory with room for \
               it, on a file system that is not mounted noexec";
    Err(Error::unavailable(Phase::Boot, format!("{why} ({})", refused.join(", "))))
}

/// Returns the reason why a directory cannot hold the memory.
fn refusal(directory: &Path, bytes: u64) -> Option<String> {
    let system = match statvfs(directory) {
        Ok(system) => system,
        Err(error) => return Some(format!("cannot be used: {error}")),
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if system.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        Some("is mounted noexec".into())
    } else if free < bytes {
        Some(format!("has {} MiB free of the {} that its guests may need", free >> 20, bytes >> 20))
    } else {
        tempfile::tempfile_in(directory).err().map(|error| format!("cannot be written to: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_refused_for_what_they_are() {
        assert_eq!(refusal(Path::new(env!("CARGO_MANIFEST_DIR")), 1), None);
        let full = refusal(Path::new(env!("CARGO_MANIFEST_DIR")), u64::MAX).unwrap();
        assert!(full.contains("MiB free of the 17592186044415"), "{full}");
        let missing = refusal(Path::new("/no such directory"), 1).unwrap();
        assert!(missing.starts_with("cannot be used: "), "{missing}");
    }
}
