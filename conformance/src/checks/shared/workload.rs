//! Calls that go through many parts of the kernel.

use crate::checks::prelude::*;
use nix::unistd::{getcwd, pipe, read, write};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// Calls that each leave fewer records than a buffer of the documented size holds.
pub(crate) const WORKLOAD: &[fn()] = &[call, files, directories, pipes, sockets, memory];

fn files() {
    let path = std::env::temp_dir().join(format!("kcov-workload-{}", std::process::id()));
    let moved = path.with_extension("moved");
    std::fs::write(&path, [1; 3000]).expect("a file");
    std::fs::rename(&path, &moved).expect("renamed");
    assert_eq!(std::fs::read(&moved).expect("its bytes").len(), 3000);
    std::fs::remove_file(&moved).expect("removed");
    assert!(std::fs::metadata(&path).is_err(), "the old name is gone");
}

fn directories() {
    assert!(std::fs::read_dir("/dev").expect("a directory").count() > 0);
    getcwd().expect("a directory of one's own");
}

fn pipes() {
    let (out, into) = pipe().expect("a pipe");
    write(&into, &[7; 10]).expect("room in the pipe");
    assert_eq!(read(&out, &mut [0; 20]), Ok(10));
}

fn sockets() {
    let (mut left, mut right) = UnixStream::pair().expect("two sockets");
    left.write_all(b"over there").expect("room in the socket");
    right.read_exact(&mut [0; 10]).expect("what was written");
}

fn memory() {
    let fresh = Map::anonymous(4 * page_size()).expect("memory");
    fresh.fill(0, 1);
    fresh.unmap().expect("unmapped");
}
