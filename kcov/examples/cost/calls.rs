//! The system calls, and their table.

use super::bursts::{best, time};
use super::modes::{Column, compare};
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::path::Path;

type Call = (&'static str, Box<dyn Fn()>);

pub fn calls() -> Result<Vec<Call>, Box<dyn Error>> {
    let directory = std::env::temp_dir().join("cost");
    fs::create_dir_all(&directory)?;
    let file = directory.join("file");
    let zero = File::open("/dev/zero")?;
    let (output, input) = nix::unistd::pipe()?;
    let (output, input) = (File::from(output), File::from(input));
    let (left, right) = UnixStream::pair()?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    udp.connect(udp.local_addr()?)?;
    let message = [1; 64];
    let mut calls: Vec<Call> = vec![
        ("getppid", Box::new(getppid)),
        ("read, 64 bytes of /dev/zero", Box::new(move || pull(&zero))),
        (
            "write and read, pipe",
            Box::new(move || {
                Write::write_all(&mut &input, &message).expect("room");
                pull(&output);
            }),
        ),
        (
            "write and read, UNIX socket",
            Box::new(move || {
                Write::write_all(&mut &left, &message).expect("room");
                pull(&right);
            }),
        ),
        (
            "send and receive, UDP",
            Box::new(move || {
                udp.send(&message).expect("sent");
                udp.recv(&mut [0; 64]).expect("received");
            }),
        ),
        ("open and close, /dev/null", Box::new(|| drop(File::open("/dev/null").expect("opened")))),
        (
            "create, write 4 KiB, unlink: /tmp",
            Box::new(move || {
                fs::write(&file, [0; 4096]).expect("written");
                fs::remove_file(&file).expect("removed");
            }),
        ),
        ("mmap, touch, munmap: 64 KiB", Box::new(map)),
        ("fork and wait", Box::new(child)),
    ];
    add_others(&mut calls, &directory);
    Ok(calls)
}

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        fn add_others(calls: &mut Vec<Call>, directory: &Path) {
            use nix::mount::{MsFlags, mount, umount};
            let (directory, place) = (directory.to_owned(), directory.to_owned());
            let mounts = move || {
                let nothing = None::<&str>;
                mount(nothing, &directory, Some("tmpfs"), MsFlags::empty(), nothing)
                    .expect("mounted");
                umount(&directory).expect("unmounted");
            };
            calls.push(("statx, procfs", Box::new(stat)));
            calls.push(("list /proc", Box::new(list)));
            calls.push(("mount and unmount, tmpfs", Box::new(mounts)));
            // With the image of an ext4 file system in the first loop device.
            if Path::new("/sys/block/loop0/loop/backing_file").exists() {
                let read_only = MsFlags::MS_RDONLY;
                let mounts = move || {
                    let (from, nothing) = (Some("/dev/loop0"), None::<&str>);
                    mount(from, &place, Some("ext4"), read_only, nothing).expect("mounted");
                    umount(&place).expect("unmounted");
                };
                calls.push(("mount and unmount, ext4", Box::new(mounts)));
            }
        }

        fn list() {
            black_box(fs::read_dir("/proc").expect("a directory").count());
        }

        pub fn stat() {
            fs::metadata("/proc/self/stat").expect("a file of procfs");
        }
    } else {
        fn add_others(_: &mut Vec<Call>, _: &Path) {}
    }
}

pub fn getppid() {
    black_box(parent_id());
}

fn pull(mut from: impl std::io::Read) {
    from.read_exact(&mut [0; 64]).expect("64 bytes");
}

fn map() {
    let length = NonZeroUsize::new(16 * 4096).expect("a length");
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the mapping is new.
    let start = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) };
    let start = start.expect("mapped");
    // SAFETY: the mapping has this size and is zeroed, and this function alone uses it.
    let pages = unsafe { start.cast::<[[u8; 4096]; 16]>().as_mut() };
    pages.iter_mut().for_each(|page| page[0] = black_box(1));
    // SAFETY: nothing refers to the mapping any more.
    unsafe { munmap(start, length.get()) }.expect("unmapped");
}

fn child() {
    // SAFETY: the child ends at once.
    match unsafe { fork() }.expect("forked") {
        // SAFETY: `_exit` runs no exit handlers.
        ForkResult::Child => unsafe { libc::_exit(0) },
        ForkResult::Parent { child } => drop(waitpid(child, None).expect("it ends")),
    }
}

/// The calls alone, then in each mode in relation to that. The last row is the time that a mode adds
/// to a hook, the median of the calls.
pub fn print(rounds: u32, modes: &[Column]) -> Result<(), Box<dyn Error>> {
    let names = modes.iter().map(|mode| format!(" {} | records |", mode.name));
    println!("| call | ns |{}", names.collect::<String>());
    println!("|---|---|{}", "---|---|".repeat(modes.len()));
    let mut hooks = vec![Vec::new(); modes.len()];
    for (name, call) in calls()? {
        let [mut best] = best(rounds, [&mut |passes| time(passes, &call)]);
        let (mut cells, mut counts) = (String::new(), Vec::new());
        for (mode, hooks) in modes.iter().zip(&mut hooks) {
            let (alone, nanos, records) = compare(rounds, &call, &mode.burst);
            best = best.min(alone);
            counts.push(records);
            hooks.push((nanos - alone) / counts[mode.hooks] as f64);
            write!(cells, " {:.2} | {records} |", nanos / alone)?;
        }
        println!("| {name} | {best:.0} |{cells}");
    }
    if !modes.is_empty() {
        let median = |hooks: &mut Vec<f64>| {
            hooks.sort_by(f64::total_cmp);
            format!(" {:.1} | |", hooks[hooks.len() / 2])
        };
        println!("| ns of a hook | |{}", hooks.iter_mut().map(median).collect::<String>());
    }
    println!();
    Ok(())
}
