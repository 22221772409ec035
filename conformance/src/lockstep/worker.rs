//! A thread under lockstep's control.
//!
//! Its process has one end of every thread's channel, so a new thread or process only needs the
//! number of its slot. The thread reports the result of each order before it waits for the next.

use super::act::{background, digest, last, mapped, misuse, trace};
use super::channel::Channels;
use super::channel::{Equipment, Order, Patience};
use super::system;
use crate::errno::Result;
use crate::kernel::this_program;
use crate::raw::{Device, Map, call};
use kcov_model::{Access, D, M, Operation, Outcome, Protection, Work};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::unistd::{ForkResult, Pid, fork};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;

/// The state of a process.
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
        channel.send(&format!("{:?}", Outcome::Done));
        loop {
            let report = match channel.receive() {
                Order::EndThread => return,
                Order::Fork { slot: child } => match self.fork() {
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
            channel.send(&format!("{report:?}"));
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
            Order::Do { operation, patience } => {
                let operation = operation.parse().expect("an operation");
                self.perform(&operation, patience, slot)
            }
            Order::Receive { new } => {
                self.keep(D(new), self.channels.take_descriptor());
                Outcome::Done
            }
            Order::StartThread { slot } => {
                let started = std::thread::Builder::new()
                    .stack_size(128 << 10)
                    .spawn(move || self.serve(slot));
                match started {
                    Ok(handle) => {
                        lock(&self.threads).insert(slot, handle);
                        Outcome::Done
                    }
                    Err(error) => Outcome::Other(format!("a thread: {error}")),
                }
            }
            Order::Join { slot } => {
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
            Order::Work { soft } => match system::work(match soft {
                true => Work::SoftInterrupt,
                false => Work::Worker,
            }) {
                Ok(()) => Outcome::Done,
                Err(errno) => errno.into(),
            },
            Order::Look { map: None } => Outcome::Done,
            Order::Look { map: Some(map) } => {
                let map = &lock(&self.maps)[&M(map)];
                Outcome::Word(digest(map, 0..map.words()))
            }
            Order::Wait { pid } => match nix::sys::wait::waitpid(Pid::from_raw(pid), None) {
                Ok(_) => Outcome::Done,
                Err(errno) => Outcome::Other(format!("waitpid: {errno}")),
            },
            Order::EndThread | Order::Fork { .. } => unreachable!("answered before"),
        }
    }

    fn keep(&self, name: D, device: Device) {
        lock(&self.devices).insert(name, device);
    }

    fn perform(&self, operation: &Operation, patience: Patience, slot: usize) -> Outcome {
        match self.try_to(operation, patience, slot) {
            Ok(report) => report,
            Err(errno) => errno.into(),
        }
    }

    fn try_to(&self, operation: &Operation, patience: Patience, slot: usize) -> Result<Outcome> {
        let devices = lock(&self.devices);
        let mut maps = lock(&self.maps);
        match operation {
            Operation::Open { descriptor, access, .. } => {
                drop(devices);
                let flags = match access {
                    Access::ReadWrite => OFlag::O_RDWR,
                    Access::ReadOnly => OFlag::O_RDONLY,
                    Access::WriteOnly => OFlag::O_WRONLY,
                };
                self.keep(*descriptor, Device::open_with(&self.path, flags)?);
            }
            Operation::Duplicate { descriptor, new, .. } => {
                let duplicate = devices[descriptor].duplicate()?;
                drop(devices);
                self.keep(*new, duplicate);
            }
            Operation::Pass { descriptor, .. } => {
                self.channels.pass_descriptor(&devices[descriptor]);
            }
            Operation::Close { descriptor, .. } => {
                drop(devices);
                let device = lock(&self.devices).remove(descriptor);
                device.expect("a descriptor").close()?;
            }
            Operation::Ask { descriptor, request, .. } => {
                system::ask(&devices[descriptor], request, self.run)?;
            }
            Operation::Misuse { descriptor, call, .. } => {
                misuse(&devices[descriptor], *call)?;
            }
            Operation::Map { descriptor, map, geometry, .. } => {
                let mapped = mapped(&devices[descriptor], geometry)?;
                drop(maps);
                lock(&self.maps).insert(*map, mapped);
            }
            Operation::Unmap { map, .. } => {
                drop(maps);
                let map = lock(&self.maps).remove(map);
                map.expect("a mapping").unmap()?;
            }
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
        match this_program() {
            Ok(program) => Command::new(program).arg("worker").arg(text).exec(),
            Err(error) => error,
        }
    }
}
