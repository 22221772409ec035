//! Datagrams to oneself. The kernel delivers each one in a softirq while the sending thread is in
//! the kernel.

use crate::errno::{Errno, Result};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

/// A socket connected to itself.
#[derive(Debug)]
pub struct Loopback(UdpSocket);

impl Loopback {
    /// Creates the socket and brings the interface up. The interface stays up.
    ///
    /// # Panics
    ///
    /// If there is no loopback interface.
    #[must_use]
    pub fn up() -> Loopback {
        let unbound = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        set_up(&unbound).expect("the interface is set up");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(socket.local_addr().expect("its address")).expect("connected to itself");
        Loopback(socket)
    }

    /// Sends a datagram and waits for it to come back.
    ///
    /// # Panics
    ///
    /// If a different datagram arrives.
    pub fn turn(&self) {
        assert_eq!(self.0.send(b"there").expect("sent"), 5);
        let mut back = [0; 8];
        assert_eq!(self.0.recv(&mut back).expect("received"), 5);
        assert_eq!(&back[..5], b"there");
    }
}

fn set_up(socket: &UdpSocket) -> Result<()> {
    // SAFETY: all-zero bytes are a valid `ifreq`: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, &letter) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = letter as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel only reads the structure, which has the expected size.
    let returned =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    Errno::check(returned).map(drop)
}
