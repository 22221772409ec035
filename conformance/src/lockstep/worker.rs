//! A thread under lockstep's control.
//!
//! Its process has one end of every thread's channel, so a new thread or process only needs the
//! number of its slot. The thread reports the result of each order before it waits for the next.

use super::channel::{Channels, Equipment, Order, Patience};
use crate::errno::Result;
use crate::raw::{Device, LONG, Map, call, page_size, wait_for};
use crate::system::lockstep as system;
use kcov_model::{Access, Call, D, FULL, Geometry, M, Operation, Outcome, Protection, WORD, Work};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::unistd::{ForkResult, Pid, Whence, fork};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;

struct Process {
    channels: Channels,
    path: PathBuf,
    run: u32,
    devices: Mutex<BTreeMap<D, Device>>,
    maps: Mutex<BTreeMap<M, Map>>,
    threads: Mutex<BTreeMap<usize, JoinHandle<()>>>,
}

/// Never contended, because only one thread of all processes runs at a time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread has panicked")
}

/// Runs the first thread of a process. It is killed or exits the process.
pub(super) fn run(equipment: Equipment) -> ! {
    let Equipment { channels, device, run, slot, descriptors } = equipment;
    let own = |(name, fd)| {
        // SAFETY: the program that executed this one left it the descriptor, and names it once.
        (D(name), Device::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    };
    let process = Process {
        channels,
        path: device,
        run,
        devices: Mutex::new(descriptors.into_iter().map(own).collect()),
        maps: Mutex::default(),
        threads: Mutex::default(),
    };
    // Lives as long as the process, because all its threads share it.
    Box::leak(Box::new(process)).serve(slot);
    std::process::exit(0)
}

impl Process {
    /// Executes orders from the channel until the thread ends.
    fn serve(&'static self, mut slot: usize) {
        let mut channel = self.channels.of_worker(slot);
        channel.send(&Outcome::Done);
        loop {
            let report = match channel.receive().expect("an order") {
                Order::EndThread => return,
                Order::Fork(child) => match self.fork() {
                    Ok(Some(pid)) => Outcome::Word(pid.as_raw() as u64),
                    Ok(None) => {
                        slot = child;
                        channel = self.channels.of_worker(slot);
                        Outcome::Done
                    }
                    Err(errno) => Outcome::Other(format!("fork: {errno}")),
                },
                order => self.obey(order, slot),
            };
            channel.send(&report);
        }
    }

    /// Returns [`None`] in the child.
    fn fork(&self) -> nix::Result<Option<Pid>> {
        // SAFETY: the other threads wait for orders and hold no lock, and the C library makes its
        // own locks usable in the child.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Some(child)),
            ForkResult::Child => {
                // The child does not have these threads.
                std::mem::take(&mut *lock(&self.threads)).into_values().for_each(std::mem::forget);
                Ok(None)
            }
        }
    }

    fn obey(&'static self, order: Order, slot: usize) -> Outcome {
        match order {
            Order::Do(operation, patience) => {
                self.perform(&operation, patience, slot).unwrap_or_else(Outcome::from)
            }
            Order::Receive(new) => {
                lock(&self.devices).insert(new, Device::receive(self.channels.pass.1));
                Outcome::Done
            }
            Order::StartThread(slot) => {
                let builder = std::thread::Builder::new().stack_size(128 << 10);
                match builder.spawn(move || self.serve(slot)) {
                    Ok(handle) => {
                        lock(&self.threads).insert(slot, handle);
                        Outcome::Done
                    }
                    Err(error) => Outcome::Other(format!("a thread: {error}")),
                }
            }
            Order::Join(slot) => {
                let handle = lock(&self.threads).remove(&slot);
                match handle.map(JoinHandle::join) {
                    Some(Ok(())) => Outcome::Done,
                    _ => Outcome::Other("the thread is not known, or has panicked".into()),
                }
            }
            Order::Call => {
                call();
                Outcome::Done
            }
            Order::Work(work) => system::work(work).map_or_else(Outcome::from, |()| Outcome::Done),
            Order::Look(None) => Outcome::Done,
            Order::Look(Some(map)) => {
                let map = &lock(&self.maps)[&map];
                Outcome::Word(digest(map, 0..map.words()))
            }
            Order::Wait(pid) => match nix::sys::wait::waitpid(Pid::from_raw(pid), None) {
                Ok(_) => Outcome::Done,
                Err(errno) => Outcome::Other(format!("waitpid: {errno}")),
            },
            Order::EndThread | Order::Fork(_) => unreachable!("answered before"),
        }
    }

    fn perform(&self, operation: &Operation, patience: Patience, slot: usize) -> Result<Outcome> {
        let mut devices = lock(&self.devices);
        let mut maps = lock(&self.maps);
        match operation {
            Operation::Open { descriptor, access, .. } => {
                let flags = match access {
                    Access::ReadWrite => OFlag::O_RDWR,
                    Access::ReadOnly => OFlag::O_RDONLY,
                    Access::WriteOnly => OFlag::O_WRONLY,
                };
                devices.insert(*descriptor, Device::open_with(&self.path, flags)?);
            }
            Operation::Duplicate { descriptor, new, .. } => {
                let duplicate = devices[descriptor].duplicate()?;
                devices.insert(*new, duplicate);
            }
            Operation::Pass { descriptor, .. } => {
                devices[descriptor].send(self.channels.pass.0);
            }
            Operation::Close { descriptor, .. } => {
                devices.remove(descriptor).expect("a descriptor").close()?;
            }
            Operation::Ask { descriptor, request, .. } => {
                system::ask(&devices[descriptor], request, self.run)?;
            }
            Operation::Misuse { descriptor, call, .. } => misuse(&devices[descriptor], *call)?,
            Operation::Map { descriptor, map, geometry, .. } => {
                maps.insert(*map, mapped(&devices[descriptor], geometry)?);
            }
            Operation::Unmap { map, .. } => maps.remove(map).expect("a mapping").unmap()?,
            Operation::Remap { map, how, .. } => system::remap(&maps[map], *how)?,
            Operation::Protect { map, protection, .. } => {
                let prot = match protection {
                    Protection::None => libc::PROT_NONE,
                    Protection::Read => libc::PROT_READ,
                    Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
                };
                maps.get_mut(map).expect("a mapping").protect(prot)?;
            }
            Operation::Trace { map, count, .. } => {
                return Ok(trace(&maps[map], *count, patience.tries));
            }
            Operation::Background { map, work, count, .. } => {
                return background(&maps[map], *work, *count, patience);
            }
            Operation::Store { map, word, .. } => maps[map].store(last(), *word),
            Operation::Load { map, .. } => return Ok(Outcome::Word(maps[map].load(last()))),
            Operation::Execute { keep, .. } => {
                return Ok(Outcome::Other(self.execute(&devices, *keep, slot).to_string()));
            }
            // SAFETY: ends the process without exit handlers, which belong to the first process.
            Operation::Exit { .. } => unsafe { libc::_exit(0) },
            other => return Ok(Outcome::Other(format!("no order for {other:?}"))),
        }
        Ok(Outcome::Done)
    }

    /// Returns only on failure.
    fn execute(&self, devices: &BTreeMap<D, Device>, keep: bool, slot: usize) -> io::Error {
        let mut descriptors = Vec::new();
        // A received descriptor, or one that survived an earlier exec, is not close-on-exec.
        let flag = if keep { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
        for (&name, device) in devices {
            if let Err(errno) = fcntl(device, FcntlArg::F_SETFD(flag)) {
                return errno.into();
            }
            if keep {
                descriptors.push((name.0, device.as_raw_fd()));
            }
        }
        let equipment = Equipment {
            channels: self.channels.clone(),
            device: self.path.clone(),
            run: self.run,
            slot,
            descriptors,
        };
        let text = serde_json::to_string(&equipment).expect("it has a text form");
        match std::env::current_exe() {
            Ok(program) => Command::new(program).arg("worker").arg(text).exec(),
            Err(error) => error,
        }
    }
}

/// The word of a mapping to store and load: the last of its first page.
pub(super) fn last() -> usize {
    page_size() / WORD as usize - 1
}

pub(super) fn mapped(device: &Device, geometry: &Geometry) -> Result<Map> {
    let Geometry { bytes, offset, writable, executable, private } = *geometry;
    let mut prot = libc::PROT_READ;
    for (wanted, bit) in [(writable, libc::PROT_WRITE), (executable, libc::PROT_EXEC)] {
        prot |= if wanted { bit } else { 0 };
    }
    let flags = if private { libc::MAP_PRIVATE } else { libc::MAP_SHARED };
    let bytes = usize::try_from(bytes).expect("the length fits");
    Ok(device.map_with(bytes, offset, prot, flags)?.with_whole_pages())
}

/// Issues a system call other than ioctl and mmap.
pub(super) fn misuse(device: &Device, call: Call) -> Result<()> {
    use nix::sys::uio::{pread, pwrite};
    let mut byte = [0];
    match call {
        Call::Read => nix::unistd::read(device, &mut byte).map(drop)?,
        Call::Write => nix::unistd::write(device, &byte).map(drop)?,
        Call::PositionedRead => pread(device, &mut byte, 0).map(drop)?,
        Call::PositionedWrite => pwrite(device, &byte, 0).map(drop)?,
        Call::Seek => nix::unistd::lseek(device.as_fd(), 0, Whence::SeekSet).map(drop)?,
        _ => system::misuse(device, call)?,
    }
    Ok(())
}

/// Makes calls and reports the counts before and after the last one. Leaves the buffer full.
///
/// Only the call runs between the store and the load of the count.
pub(super) fn trace(map: &Map, count: u64, tries: u32) -> Outcome {
    let (mut before, mut after) = (0, 0);
    for turn in 0..tries {
        if turn > 0 {
            // The owner of the buffer may not have come to rest yet.
            std::thread::yield_now();
        }
        if map.is_writable() {
            map.store(0, count);
        }
        before = map.count();
        call();
        after = map.count();
        if before == after {
            break;
        }
    }
    if map.is_writable() {
        map.store(0, FULL);
    }
    Outcome::Counted(before, after)
}

/// Lets the kernel work, and reports the counts before and after. Leaves the buffer full.
pub(super) fn background(map: &Map, work: Work, count: u64, patience: Patience) -> Result<Outcome> {
    let mut after = count;
    for _ in 0..patience.tries {
        map.store(0, count);
        system::work(work)?;
        // A section may end after its work is done.
        let _ = wait_for(LONG, || map.count() >= patience.least);
        after = map.swap(0, FULL);
        if after == count {
            break;
        }
    }
    Ok(Outcome::Counted(count, after))
}

pub(super) fn digest(map: &Map, words: Range<usize>) -> u64 {
    // Odd, so that no bit is lost.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    words.fold(0, |sum: u64, index| (sum.rotate_left(5) ^ map.load(index)).wrapping_mul(FACTOR))
}
