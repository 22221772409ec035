//! Fuzzes sequences of socket calls, each sequence in a child.
use kcov_libafl::Param::{Bytes, Flags, Length, Number, OneOf, Result};
use kcov_libafl::{Calls, Fork, Fuzz, Resource};
use libc::{AF_INET, AF_INET6, AF_UNIX, IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, SOL_SOCKET};
use libc::{MSG_OOB, MSG_PEEK, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_RAW, SOCK_STREAM};
use std::time::Duration;

static SOCKET: Resource = Resource::new("socket", |fd| {
    // SAFETY: only programs use the descriptor.
    unsafe { libc::close(fd as i32) };
});

const FAMILIES: &[u64] = &[AF_UNIX as u64, AF_INET as u64, AF_INET6 as u64];
const KINDS: &[u64] = &[
    (SOCK_STREAM | SOCK_NONBLOCK) as u64,
    (SOCK_DGRAM | SOCK_NONBLOCK) as u64,
    (SOCK_RAW | SOCK_NONBLOCK) as u64,
];
const PROTOCOLS: &[u64] = &[0, IPPROTO_TCP as u64, IPPROTO_UDP as u64];
const LEVELS: &[u64] = &[SOL_SOCKET as u64, IPPROTO_IP as u64, IPPROTO_TCP as u64];
const MESSAGE: &[u64] = &[MSG_OOB as u64, MSG_PEEK as u64];

/// Makes a call with arguments of these types.
macro_rules! c {
    ($name:ident($($type:ty),*)) => {
        |arguments| {
            let mut all = arguments.iter();
            let mut next = || *all.next().expect("there is one for each parameter");
            // SAFETY: each address comes with the length of its memory, and each descriptor is a
            // socket of the program or -1.
            unsafe { libc::$name($(next() as $type),*) as i64 }
        }
    };
}

/// Name, parameters, and how to make the call.
#[rustfmt::skip]
fn calls() -> Calls {
    let kinds = &[OneOf(FAMILIES), OneOf(KINDS), OneOf(PROTOCOLS)];
    let address = &[Result(&SOCKET), Bytes(28), Length];
    let message = &[Result(&SOCKET), Bytes(64), Length, Flags(MESSAGE)];
    let option = &[Result(&SOCKET), OneOf(LEVELS), Number, Bytes(64), Length];
    Calls::new()
        .returning(&SOCKET, "socket", kinds, c!(socket(i32, i32, i32)))
        .returning(&SOCKET, "dup", &[Result(&SOCKET)], c!(dup(i32)))
        .call("bind", address, c!(bind(i32, *const _, u32)))
        .call("connect", address, c!(connect(i32, *const _, u32)))
        .call("listen", &[Result(&SOCKET), Number], c!(listen(i32, i32)))
        .call("send", message, c!(send(i32, *const _, usize, i32)))
        .call("recv", message, c!(recv(i32, *mut _, usize, i32)))
        .call("setsockopt", option, c!(setsockopt(i32, i32, i32, *const _, u32)))
        .call("shutdown", &[Result(&SOCKET), OneOf(&[0, 1, 2])], c!(shutdown(i32, i32)))
}

fn main() -> std::result::Result<(), libafl::Error> {
    // SAFETY: the process has only one thread.
    let fork = unsafe { Fork::new() };
    Fuzz::new().forked(fork, Duration::from_millis(200)).args()?.calls(&calls(), 12)?;
    Ok(())
}
