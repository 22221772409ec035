//! Linux: init is in an initramfs, which it can change.

use crate::job::{Mount, Shutdown};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::system::{RebootCommand, reboot};
use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::{io, mem};

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

/// Disables IPv6 on interfaces created later, because it sends packets of its own there. `lo` keeps
/// its address.
pub fn silence_interfaces() -> io::Result<()> {
    set("net.ipv6.conf.default.disable_ipv6", "1")
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
