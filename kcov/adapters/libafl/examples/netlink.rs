//! Fuzzes the routing messages of netlink with bytes. Needs Linux.
//!
//! Run it in a guest: inputs change addresses, routes and links.

#[cfg(target_os = "linux")]
mod linux {
    use kcov_libafl::Fuzz;
    use libafl::executors::ExitKind;
    use rustix::io::Result;
    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

    const GET_LINK: u16 = 18;
    const NEW_ADDRESS: u16 = 20;
    const NEW_ROUTE: u16 = 24;
    const REQUEST: u16 = 1;
    const CREATE: u16 = 0x400;
    const DUMP: u16 = 0x300;

    /// A message without its length.
    fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let head = [[0, 0], [0, 0], kind.to_ne_bytes(), (REQUEST | flags).to_ne_bytes()];
        [&head.concat(), &[0; 8][..], body].concat()
    }

    /// Sends a message on a socket of its own and takes the first answer.
    fn exchange(input: &[u8]) -> Result<()> {
        let mut message = input.to_vec();
        if let Some(length) = message.first_chunk_mut() {
            *length = (input.len() as u32).to_ne_bytes();
        }
        // The default protocol is NETLINK_ROUTE.
        let socket = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
        sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        recv(&socket, &mut [0; 4096], RecvFlags::DONTWAIT)?;
        Ok(())
    }

    pub fn main() -> std::result::Result<(), libafl::Error> {
        // For the loopback interface: an address with one attribute, and a route with one.
        let address = [2, 8, 0, 0, 1, 0, 0, 0, 8, 0, 2, 0, 127, 0, 0, 2];
        let route = [2, 8, 0, 0, 254, 4, 254, 1, 0, 0, 0, 0, 8, 0, 4, 0, 1, 0, 0, 0];
        let seeds = [
            message(GET_LINK, DUMP, &[0; 16]),
            message(NEW_ADDRESS, CREATE, &address),
            message(NEW_ROUTE, CREATE, &route),
        ];
        Fuzz::new().args()?.bytes(&seeds.each_ref().map(Vec::as_slice), |input| {
            // The kernel refuses most messages.
            let _ = exchange(input);
            ExitKind::Ok
        })?;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
use linux::main;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("netlink needs Linux");
}
