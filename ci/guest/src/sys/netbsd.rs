//! NetBSD: init is on a disk of its own, which it can change.

use crate::job::{Mount, Shutdown};
use rustix::fs::minor;
use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::{io, mem, ptr};

/// `MNT_UPDATE` of `<sys/fstypes.h>`: changes a mounted file system's options.
const MNT_UPDATE: c_int = 0x0001_0000;

/// Runs before anything else. On NetBSD init has to open the console and make
/// the root file system writable. It also disables the debugger, where a panic
/// would wait for input.
pub fn begin() -> io::Result<()> {
    // This fails only for a session leader, which needs no new session.
    let _ = setsid();
    let console = OpenOptions::new().read(true).write(true).open("/dev/console")?;
    dup2_stdin(&console)?;
    dup2_stdout(&console)?;
    dup2_stderr(&console)?;
    // A kernel without the debugger lacks this setting and does not wait.
    let _ = set("ddb.onpanic", "0");
    // `struct ufs_args` of `<ufs/ufs/ufsmount.h>`: the device's name. An update
    // needs none.
    mount_with(c"ffs", c"/", MNT_UPDATE, &mut ptr::null_mut::<c_char>())
}

/// Opens the serial line to the host. A kernel numbers serial lines by the way
/// it finds them. So `*` stands for the first existing line that is not the
/// console.
pub fn open_channel(name: &str) -> io::Result<File> {
    const UNITS: u32 = 8;
    let console = console_unit()?;
    let open = |unit: u32| {
        let name = name.replace('*', &unit.to_string());
        OpenOptions::new().read(true).write(true).open(name)
    };
    let not_configured = |error: &io::Error| error.raw_os_error() == Some(libc::ENXIO);
    (0..UNITS)
        .filter(|unit| *unit != console)
        .map(open)
        .find(|result| !result.as_ref().is_err_and(not_configured))
        .unwrap_or_else(|| Err(io::Error::other("there is no second serial line")))
}

/// The console's number among the serial lines.
fn console_unit() -> io::Result<u32> {
    let mut device: libc::dev_t = 0;
    let mut size = mem::size_of_val(&device);
    let old = ptr::from_mut(&mut device).cast::<c_void>();
    // SAFETY: the name is null-terminated, `old` is valid for `size` bytes, and
    // there is no new value.
    let result =
        unsafe { libc::sysctlbyname(c"kern.consdev".as_ptr(), old, &raw mut size, ptr::null(), 0) };
    if result == 0 { Ok(minor(device)) } else { Err(io::Error::last_os_error()) }
}

/// `struct tmpfs_args` of `<fs/tmpfs/tmpfs_args.h>`. Zero means no limit.
#[repr(C)]
struct TmpfsArgs {
    version: c_int,
    nodes_max: libc::ino_t,
    size_max: libc::off_t,
    root_uid: libc::uid_t,
    root_gid: libc::gid_t,
    root_mode: libc::mode_t,
}

/// Mounts a file system on a directory that exists.
pub fn mount(point: &Mount) -> io::Result<()> {
    if point.kind != "tmpfs" {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut arguments = TmpfsArgs {
        version: 1,
        nodes_max: 0,
        size_max: 0,
        root_uid: 0,
        root_gid: 0,
        root_mode: 0o1777,
    };
    let target = CString::new(point.target.as_str())?;
    mount_with(c"tmpfs", &target, 0, &mut arguments)
}

/// mount(2) with the arguments of the file system `kind`.
fn mount_with<T>(kind: &CStr, target: &CStr, flags: c_int, arguments: &mut T) -> io::Result<()> {
    let data = ptr::from_mut(arguments).cast::<c_void>();
    let size = mem::size_of::<T>();
    // SAFETY: both strings are null-terminated, `data` is valid for `size`
    // bytes, and all three outlive the call.
    let result = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), flags, data, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `struct ifaliasreq` of `<net/if.h>`.
#[repr(C)]
struct InterfaceAddress {
    name: [u8; 16],
    address: libc::sockaddr_in,
    destination: libc::sockaddr_in,
    mask: libc::sockaddr_in,
}

/// `SIOCAIFADDR` of `<sys/sockio.h>`: `_IOW('i', 26, struct ifaliasreq)`.
const ADD_ADDRESS: libc::c_ulong = 0x8040_691a;

/// Does nothing: the image has all devices, and a guest has no interface but `lo0`.
pub fn furnish() -> io::Result<()> {
    Ok(())
}

/// Gives the interface `lo0` its address, which also enables it.
pub fn raise_loopback() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let inet = |address: Ipv4Addr| libc::sockaddr_in {
        sin_len: mem::size_of::<libc::sockaddr_in>() as u8,
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    };
    let mut name = [0; 16];
    name[..3].copy_from_slice(b"lo0");
    let request = InterfaceAddress {
        name,
        address: inet(Ipv4Addr::LOCALHOST),
        destination: inet(Ipv4Addr::LOCALHOST),
        mask: inet(Ipv4Addr::new(255, 0, 0, 0)),
    };
    // SAFETY: the request takes a `struct ifaliasreq`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), ADD_ADDRESS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets a sysctl of type `int`.
fn set(name: &str, value: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    let value: c_int = value.parse().map_err(io::Error::other)?;
    let new = ptr::from_ref(&value).cast::<c_void>();
    let size = mem::size_of::<c_int>();
    // SAFETY: the name is null-terminated, `new` is valid for `size` bytes, and
    // the old value may be null because it is not requested.
    let result =
        unsafe { libc::sysctlbyname(name.as_ptr(), ptr::null_mut(), ptr::null_mut(), new, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the machine. Returns only if that fails.
pub fn go_down(shutdown: Shutdown) -> io::Result<()> {
    let how = match shutdown {
        Shutdown::PowerOff => libc::RB_POWERDOWN,
        Shutdown::Restart => libc::RB_AUTOBOOT,
        Shutdown::Wait => super::wait_for_the_host(),
    };
    // SAFETY: without RB_STRING, the string is not read.
    unsafe { libc::reboot(how, ptr::null_mut::<c_char>()) };
    Err(io::Error::last_os_error())
}
