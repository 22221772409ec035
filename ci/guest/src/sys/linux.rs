//! Linux: init is in an initramfs, which it can change.

use crate::job::{Mount, Shutdown};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_bind, mount_move};
use rustix::process::{Resource, Rlimit, chdir, chroot, getrlimit, setrlimit};
use rustix::system::{RebootCommand, reboot};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::{io, mem};

/// Runs before anything else.
pub fn begin() -> io::Result<()> {
    // pivot_root(2) refuses the kernel's first mount, so the root becomes a mount on it.
    const ROOT: &str = "/mnt";
    fs::create_dir_all(ROOT)?;
    mount_bind("/", ROOT)?;
    chdir(ROOT)?;
    mount_move(".", "/")?;
    Ok(chroot(".")?)
}

/// Opens the serial line to the host.
pub fn open_channel(name: &str) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(name)
}

/// Mounts a file system on a directory that exists.
pub fn mount(point: &Mount) -> io::Result<()> {
    let kind = point.kind.as_str();
    let options = CString::new(point.options.as_str())?;
    let flags = MountFlags::empty();
    match rustix::mount::mount(kind, point.target.as_str(), kind, flags, &*options) {
        // The kernel may have mounted /dev already.
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Links that udev makes.
const LINKS: &[(&str, &str)] = &[
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("/proc/kcore", "/dev/core"),
    ("rtc0", "/dev/rtc"),
];

/// Settings of systemd, and one of ours, whose names a kernel may lack.
const SETTINGS: &[(&str, &str)] = &[
    // On interfaces created later IPv6 would send packets of its own. `lo` keeps its address.
    ("net.ipv6.conf.default.disable_ipv6", "1"),
    ("fs.protected_fifos", "1"),
    ("fs.protected_hardlinks", "1"),
    ("fs.protected_regular", "1"),
    ("fs.protected_symlinks", "1"),
    ("kernel.pid_max", "4194304"),
    ("net.ipv4.ping_group_range", "0 2147483647"),
];

/// The number of files that a process may open if it asks for them, as systemd has it.
const FILES: u64 = 524_288;

/// Makes what udev, systemd and their settings make on other machines, after the file systems are
/// mounted.
pub fn furnish() -> io::Result<()> {
    for (to, at) in LINKS {
        let known = Path::new("/dev").join(to);
        if known.exists() || to.starts_with("/proc/self") {
            symlink(to, at)?;
        }
    }
    ["/run/lock", "/run/user"].iter().try_for_each(fs::create_dir_all)?;
    File::create("/run/utmp")?;
    for (path, mode) in [("/", 0o755), ("/run/lock", 0o1777)] {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    let name = fs::read_to_string("/etc/hostname")?;
    rustix::system::sethostname(name.trim().as_bytes())?;
    SETTINGS.iter().for_each(|(name, value)| drop(set(name, value)));
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { maximum: Some(FILES), ..limit })?)
}

/// Enables the interface `lo`, which then has its addresses.
pub fn raise_loopback() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zero is valid for every field.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request takes a `struct ifreq`, which outlives the call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets a sysctl.
fn set(name: &str, value: &str) -> io::Result<()> {
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
