//! Fuzzes a device with planted faults, of which two are in background work. Needs the target
//! `linux-uml-planted`.

#[cfg(target_os = "linux")]
mod linux {
    use kcov::remote::linux::Remote;
    use kcov_libafl::Param::{Bytes, Length, Number, Result};
    use kcov_libafl::{Calls, Fuzz, Resource};
    use std::os::fd::RawFd;
    use std::sync::mpsc::{Sender, channel};
    use std::thread;
    use std::time::Duration;

    static FILE: Resource = Resource::new("file", |fd| {
        // SAFETY: only programs use the descriptor.
        unsafe { libc::close(fd as i32) };
    });

    const START: libc::Ioctl = request(1);
    const FEED: libc::Ioctl = request(2);
    const COMMIT: libc::Ioctl = request(3);
    const LINK: libc::Ioctl = request(4);
    const TURN: libc::Ioctl = request(5);

    /// `_IO('P', number)`.
    const fn request(number: u8) -> libc::Ioctl {
        ((b'P' as libc::Ioctl) << 8) | number as libc::Ioctl
    }

    fn open() -> i64 {
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::open(c"/dev/kcov-planted".as_ptr(), libc::O_RDWR) }.into()
    }

    fn ioctl(fd: u64, request: libc::Ioctl, argument: u64) -> i64 {
        // SAFETY: none of the device's requests takes an address.
        unsafe { libc::ioctl(fd as RawFd, request, argument) }.into()
    }

    fn link(arguments: &[u64]) -> i64 {
        let [fd, other, key] = *arguments else { return -1 };
        ioctl(fd, LINK, other & u64::from(u32::MAX) | key << 32)
    }

    fn write(arguments: &[u64]) -> i64 {
        let [fd, address, length] = *arguments else { return -1 };
        // SAFETY: the address is of that many bytes.
        unsafe { libc::write(fd as RawFd, address as *const _, length as usize) as i64 }
    }

    /// A thread that takes turns with the descriptors and numbers that it gets.
    fn other_thread() -> Sender<(u64, u64)> {
        let (sender, turns) = channel();
        thread::spawn(move || {
            turns.iter().for_each(|(fd, number)| _ = ioctl(fd, TURN, number));
        });
        sender
    }

    fn calls() -> Calls {
        let other = other_thread();
        Calls::new()
            .returning(&FILE, "open", &[], |_| open())
            .call("write", &[Result(&FILE), Bytes(32), Length], write)
            .call("start", &[Result(&FILE), Number], |a| ioctl(a[0], START, a[1]))
            .call("feed", &[Result(&FILE), Number], |a| ioctl(a[0], FEED, a[1]))
            .call("commit", &[Result(&FILE)], |a| ioctl(a[0], COMMIT, 0))
            .call("link", &[Result(&FILE), Result(&FILE), Number], link)
            .call("turn", &[Result(&FILE), Number], |a| ioctl(a[0], TURN, a[1]))
            .call("other_turn", &[Result(&FILE), Number], move |a| {
                other.send((a[0], a[1])).map_or(-1, |()| 0)
            })
    }

    pub fn main() -> std::result::Result<(), libafl::Error> {
        // A write returns after the background work that it causes.
        let background = Remote::new().any_common();
        Fuzz::new().with_background(background, Duration::ZERO).args()?.calls(&calls(), 8)?;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
use linux::main;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("planted needs Linux");
}
