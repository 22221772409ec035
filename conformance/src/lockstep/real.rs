//! The kernel's side: processes and threads that execute the operations one at a time.

use super::channel::{Channel, Channels, Equipment, Order, Patience};
use super::worker;
use crate::errno::Errno;
use crate::raw::Device;
use crate::system::lockstep::{self as system, Driver};
use kcov_model::{D, Operation, Outcome, Request, T, World};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SLOTS: usize = kcov_model::MOST_THREADS;
/// A thread that does not answer for this many seconds hangs. A worker waits less for the kernel.
const PATIENCE: i64 = 100;

/// The parts that all runs share.
#[derive(Debug)]
pub struct Stage {
    channels: Channels,
    device: PathBuf,
    /// A device of this process, to query the driver.
    spare: Device,
    runs: u32,
}

/// One run: a tree of processes that starts with one thread, `T(0)`.
pub struct Real<'a> {
    stage: &'a mut Stage,
    /// The channel of each thread.
    slots: BTreeMap<T, usize>,
    processes: BTreeMap<T, Process>,
    /// Makes handles differ between runs.
    run: u32,
    lost: bool,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    pid: Pid,
    parent: Pid,
}

impl Stage {
    /// Prepares. The calling process must have only one thread.
    pub fn new(device: &Path) -> Result<Stage, String> {
        let failed = |what: &str, errno: Errno| format!("{what}: {errno}");
        system::prepare().map_err(|errno| failed("the system is not prepared", errno))?;
        let channels =
            Channels::new(SLOTS, PATIENCE).map_err(|e| failed("no sockets", e.into()))?;
        let sized = Device::open(device).and_then(|spare| spare.init_trace(512).map(|()| spare));
        let spare = sized.map_err(|e| failed("no device", e))?;
        Ok(Stage { channels, device: device.to_owned(), spare, runs: 0 })
    }

    pub fn start(&mut self) -> Result<Real<'_>, String> {
        system::reset(&self.device).map_err(|errno| format!("sources stay enabled: {errno}"))?;
        self.runs += 1;
        let run = std::process::id().wrapping_mul(1 << 12).wrapping_add(self.runs);
        let equipment = Equipment {
            channels: self.channels.clone(),
            device: self.device.clone(),
            run,
            slot: 0,
            descriptors: Vec::new(),
        };
        // SAFETY: this process has one thread, so no other thread holds a lock.
        let pid = match unsafe { fork() }.map_err(|errno| format!("fork: {errno}"))? {
            ForkResult::Child => worker::run(equipment),
            ForkResult::Parent { child } => child,
        };
        let process = Process { pid, parent: Pid::this() };
        let mut real = Real {
            stage: self,
            slots: [(T(0), 0)].into(),
            processes: [(T(0), process)].into(),
            run,
            lost: false,
        };
        match real.hear(0) {
            Outcome::Done => Ok(real),
            other => Err(format!("the first thread does not start: {other:?}")),
        }
    }
}

impl Real<'_> {
    fn channel(&self, slot: usize) -> Channel {
        self.stage.channels.of_driver(slot)
    }

    fn hear(&mut self, slot: usize) -> Outcome {
        self.channel(slot).receive().unwrap_or_else(|errno| {
            // A late answer would be mistaken for the answer to another order.
            self.lost = true;
            Outcome::Other(format!("no answer after {PATIENCE} s ({errno})"))
        })
    }

    fn tell(&mut self, thread: T, order: &Order) -> Outcome {
        let slot = self.slots[&thread];
        self.channel(slot).send(order);
        self.hear(slot)
    }

    /// Gives a thread an order other than an operation. It cannot be refused.
    pub(super) fn asked(&mut self, thread: T, order: &Order) -> Result<Outcome, Outcome> {
        match self.tell(thread, order) {
            seen @ (Outcome::Done | Outcome::Word(_)) => Ok(seen),
            other => Err(Outcome::Other(format!("{order:?} of {thread:?} results in {other:?}"))),
        }
    }

    /// Duplicates a thread's descriptor into this process.
    pub(super) fn lent(&mut self, thread: T, descriptor: D) -> Result<Device, Outcome> {
        let operation = Operation::Pass { thread, descriptor, to: thread, new: descriptor };
        self.asked(thread, &order(&operation, Patience::NONE))?;
        Ok(Device::receive(self.stage.channels.pass.1))
    }

    /// Issues ioctls on a device of this process and compares the results.
    pub(super) fn shows(&mut self, requests: Vec<(Request, Outcome)>) -> Result<(), Outcome> {
        for (request, expected) in requests {
            let seen = match system::ask(&self.stage.spare, &request, self.run) {
                Ok(()) => Outcome::Done,
                Err(errno) => errno.into(),
            };
            if seen != expected {
                let what = format!("{request:?} of another process is {seen:?}, not {expected:?}");
                return Err(Outcome::Other(what));
            }
        }
        Ok(())
    }

    fn free_slot(&self) -> usize {
        let used: Vec<_> = self.slots.values().collect();
        (0..SLOTS).find(|slot| !used.contains(&slot)).expect("no more threads than slots")
    }

    /// Executes a possible operation.
    pub(super) fn run(
        &mut self,
        world: &World<Driver>,
        operation: &Operation,
        patience: Patience,
    ) -> Outcome {
        let thread = operation.thread();
        let process = world.process_of(thread).expect("a thread");
        match *operation {
            Operation::Pass { to, new, .. } => {
                let sent = self.tell(thread, &order(operation, Patience::NONE));
                if sent != Outcome::Done {
                    return sent;
                }
                self.tell(to, &Order::Receive(new))
            }
            Operation::StartThread { new, .. } => {
                let slot = self.free_slot();
                let told = self.tell(thread, &Order::StartThread(slot));
                self.begin(told, new, slot)
            }
            Operation::EndThread { .. } => {
                let slot = self.slots.remove(&thread).expect("a thread");
                self.channel(slot).send(&Order::EndThread);
                self.tell(process, &Order::Join(slot))
            }
            Operation::Fork { new, .. } => self.fork(thread, process, new),
            Operation::Execute { .. } => {
                let slot = self.slots[&thread];
                self.channel(slot).send(&order(operation, Patience::NONE));
                let process = self.forget(world, process);
                // The new program's only thread takes over the channel.
                self.slots.insert(thread, slot);
                self.processes.insert(thread, process);
                self.hear(slot)
            }
            Operation::Exit { .. } => {
                let slot = self.slots[&thread];
                self.channel(slot).send(&order(operation, Patience::NONE));
                self.buried(world, process)
            }
            Operation::Kill { .. } => {
                let pid = self.processes[&process].pid;
                match kill(pid, Signal::SIGKILL) {
                    Ok(()) => self.buried(world, process),
                    Err(errno) => Outcome::Other(format!("kill: {errno}")),
                }
            }
            Operation::Background { work, .. } => {
                let order = order(operation, patience);
                system::quietly(&world.driver, work, || self.tell(thread, &order))
            }
            _ => self.tell(thread, &order(operation, patience)),
        }
    }

    /// Waits for the first message of a new thread.
    fn begin(&mut self, told: Outcome, new: T, slot: usize) -> Outcome {
        if told != Outcome::Done {
            return told;
        }
        self.slots.insert(new, slot);
        self.hear(slot)
    }

    fn fork(&mut self, thread: T, process: T, new: T) -> Outcome {
        let slot = self.free_slot();
        let own = self.slots[&thread];
        self.channel(own).send(&Order::Fork(slot));
        match self.hear(own) {
            Outcome::Word(pid) => {
                let parent = self.processes[&process].pid;
                self.processes.insert(new, Process { pid: Pid::from_raw(pid as i32), parent });
                self.begin(Outcome::Done, new, slot)
            }
            other => other,
        }
    }

    fn forget(&mut self, world: &World<Driver>, process: T) -> Process {
        self.slots.retain(|thread, _| world.process_of(*thread) != Some(process));
        self.processes.remove(&process).expect("a process")
    }

    /// Waits for the exit of a process.
    fn buried(&mut self, world: &World<Driver>, process: T) -> Outcome {
        let Process { pid, parent } = self.forget(world, process);
        let waiting = self.processes.iter().find(|(_, process)| process.pid == parent);
        match waiting.map(|(&name, _)| name) {
            Some(parent) => self.tell(parent, &Order::Wait(pid.as_raw())),
            None => gone(pid),
        }
    }

    /// Kills all processes, so the next run starts from scratch.
    pub fn end(self) -> Result<(), String> {
        for process in self.processes.values() {
            kill(process.pid, Signal::SIGKILL).map_err(|errno| format!("kill: {errno}"))?;
        }
        for process in self.processes.values() {
            match gone(process.pid) {
                Outcome::Done => {}
                other => return Err(format!("a process does not end: {other:?}")),
            }
        }
        if self.lost {
            // Late answers remain in the old channels.
            let channels = Channels::new(SLOTS, PATIENCE);
            self.stage.channels = channels.map_err(|errno| errno.to_string())?;
        }
        Ok(())
    }
}

fn order(operation: &Operation, patience: Patience) -> Order {
    Order::Do(operation.clone(), patience)
}

/// Waits for the exit of a process whose parent is this process or init.
fn gone(pid: Pid) -> Outcome {
    let end = Instant::now() + Duration::from_secs(PATIENCE.unsigned_abs());
    loop {
        let gone = match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => false,
            Ok(_) => true,
            // It may become a child of this process later.
            Err(_) => kill(pid, None) == Err(nix::errno::Errno::ESRCH),
        };
        if gone {
            return Outcome::Done;
        }
        if Instant::now() >= end {
            return Outcome::Other(format!("process {pid} is there after {PATIENCE} s"));
        }
        std::thread::yield_now();
    }
}
