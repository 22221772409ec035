//! Linux: init is in an initramfs, which it can change.

use crate::job::{Mount, Shutdown};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::system::{RebootCommand, reboot};
use std::fs::{self, File, OpenOptions};
use std::io;

/// Runs before anything else.
pub fn begin() -> io::Result<()> {
    Ok(())
}

/// Opens the serial line to the host.
pub fn open_channel(name: &str) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(name)
}

/// Mounts a file system on a directory that exists.
pub fn mount(point: &Mount) -> io::Result<()> {
    let kind = point.kind.as_str();
    match rustix::mount::mount(kind, point.target.as_str(), kind, MountFlags::empty(), None) {
        // The kernel may have mounted /dev already.
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a directory read-only, for root as well.
pub fn make_read_only(path: &str) -> io::Result<()> {
    rustix::mount::mount_bind(path, path)?;
    Ok(rustix::mount::mount_remount(path, MountFlags::BIND | MountFlags::RDONLY, "")?)
}

/// Sets a sysctl.
pub fn set(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value)
}

/// Ends the machine. Returns only if that fails.
pub fn go_down(shutdown: Shutdown) -> io::Result<()> {
    rustix::fs::sync();
    let command = match shutdown {
        Shutdown::PowerOff => RebootCommand::PowerOff,
        Shutdown::Restart => RebootCommand::Restart,
        Shutdown::Wait => super::wait_for_the_host(),
    };
    Ok(reboot(command)?)
}
