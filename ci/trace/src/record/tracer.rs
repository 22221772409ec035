//! The debugger's loop: follows every thread from its first instruction to its end.

use super::Ended;
use super::clock::Clock;
use super::inject::Newborn;
use crate::coverage::Thread;
use crate::error::Error;
use kcov::{BufferSize, ChildBuffer, Completeness, Device, mode::TracePc};
use kcov_sys::linux::{KCOV_ENABLE, KCOV_TRACE_PC};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io, mem};

/// The debugger's state of the threads.
struct Tracer {
    words: u64,
    live: HashMap<Pid, Live>,
    /// Buffers of ended threads, for reuse.
    spare: Vec<ChildBuffer<TracePc>>,
    done: Vec<Thread>,
}

/// A thread that has not ended.
struct Live {
    /// `None` if it cannot be traced.
    buffer: Option<ChildBuffer<TracePc>>,
    /// The records that were already read from the buffer.
    read: Thread,
    /// Whether it was told to stop, so that its buffer can be emptied.
    stopping: bool,
}

/// Runs a command. Returns its threads' coverage and how it ended.
pub fn run(
    command: &[OsString],
    words: u64,
    limit: Option<u32>,
) -> Result<(Vec<Thread>, Ended), Error> {
    let mut tracer = Tracer { words, live: HashMap::new(), spare: Vec::new(), done: Vec::new() };
    let shown = Path::new(&command[0]).display();
    let first = tracer.start(command)?;
    let failed = |errno| Error::Unavailable(format!("ptrace of {shown}: {errno}"));
    let clock = Clock::start(limit).map_err(failed)?;
    let status = tracer.follow(first, &clock).map_err(failed)?;
    let ended = match limit {
        Some(seconds) if clock.is_over() => Ended::AtLimit(seconds),
        _ => Ended::ByItself(status),
    };
    Ok((tracer.done, ended))
}

impl Tracer {
    fn buffer(&mut self) -> Result<ChildBuffer<TracePc>, kcov::Error> {
        if let Some(buffer) = self.spare.pop() {
            return Ok(buffer);
        }
        let device = Device::builder().size(BufferSize::words(self.words)).open()?;
        Ok(device.into_child_buffer(TracePc)?)
    }

    /// Starts the command, which stops before its first instruction.
    fn start(&mut self, command: &[OsString]) -> Result<Pid, Error> {
        let shown = Path::new(&command[0]).display();
        let buffer = self.buffer()?;
        let fd = buffer.device().as_fd().as_raw_fd();
        let mut start = Command::new(&command[0]);
        start.args(&command[1..]);
        let before_exec = move || {
            ptrace::traceme()?;
            // SAFETY: the request takes a number. The child inherits the file descriptor, which
            // stays open until exec.
            let result = unsafe { libc::ioctl(fd, u64::from(KCOV_ENABLE) as _, KCOV_TRACE_PC) };
            Errno::result(result).map(drop).map_err(io::Error::from)
        };
        // SAFETY: the closure makes two system calls. It neither allocates nor takes a lock.
        unsafe { start.pre_exec(before_exec) };
        let child = start.spawn().map_err(Error::of(&shown))?;
        let first = Pid::from_raw(child.id() as i32);
        let options = Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACEEXIT
            | Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_EXITKILL;
        // The command stops at its exec, which has completed by now.
        let begin = || {
            waitpid(first, None)?;
            ptrace::setoptions(first, options)?;
            ptrace::cont(first, None)
        };
        begin().map_err(|errno| Error::Unavailable(format!("ptrace of {shown}: {errno}")))?;
        self.live
            .insert(first, Live { buffer: Some(buffer), read: described(first), stopping: false });
        Ok(first)
    }

    /// Follows all threads until none is left.
    fn follow(&mut self, first: Pid, clock: &Clock) -> Result<u8, Errno> {
        let mut result = 0;
        loop {
            if clock.has_ticked() {
                if clock.is_over() {
                    self.kill_all();
                } else {
                    self.stop_full();
                }
            }
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                Err(Errno::ECHILD) => return Ok(result),
                Err(errno) => return Err(errno),
            };
            let resumed = match status {
                WaitStatus::Exited(thread, status) => {
                    if thread == first {
                        result = status as u8;
                    }
                    self.end(thread);
                    Ok(())
                }
                WaitStatus::Signaled(thread, signal, _) => {
                    if thread == first {
                        result = 128 + signal as u8;
                    }
                    self.end(thread);
                    Ok(())
                }
                WaitStatus::PtraceEvent(thread, _, libc::PTRACE_EVENT_EXEC) => {
                    self.renumber(thread)?;
                    ptrace::cont(thread, None)
                }
                WaitStatus::Stopped(thread, Signal::SIGSTOP)
                    if !self.live.contains_key(&thread) =>
                {
                    self.adopt(thread)
                }
                WaitStatus::Stopped(thread, Signal::SIGSTOP) if self.has_emptied(thread) => {
                    ptrace::cont(thread, None)
                }
                WaitStatus::Stopped(thread, signal) => {
                    self.rename(thread);
                    ptrace::cont(thread, signal)
                }
                WaitStatus::PtraceEvent(thread, ..) | WaitStatus::PtraceSyscall(thread) => {
                    self.rename(thread);
                    ptrace::cont(thread, None)
                }
                _ => Ok(()),
            };
            // A thread may be killed while it is stopped.
            match resumed {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Kills all known threads. Their coverage is read when they have ended. The next signal kills
    /// those that were unknown.
    fn kill_all(&self) {
        for thread in self.live.keys() {
            // An ended thread needs no signal.
            let _ = kill(*thread, Signal::SIGKILL);
        }
    }

    /// Stops the threads whose buffers are half full.
    fn stop_full(&mut self) {
        for live in self.live.values_mut() {
            let records = live.buffer.as_ref().map_or(0, |buffer| buffer.trace().len());
            if !live.stopping && records as u64 > self.words / 2 {
                let (process, number) = (live.read.process, live.read.number);
                // SAFETY: the call takes numbers. It fails if the thread has ended.
                let sent =
                    unsafe { libc::syscall(libc::SYS_tgkill, process, number, libc::SIGSTOP) };
                live.stopping = sent == 0;
            }
        }
    }

    /// Whether a thread stopped because its buffer was half full. Then it is empty now.
    fn has_emptied(&mut self, thread: Pid) -> bool {
        let stopped = self.live.get_mut(&thread).filter(|live| live.stopping);
        stopped.is_some_and(|live| {
            live.stopping = false;
            live.empty()
        })
    }

    /// Adopts a new thread of a traced one.
    fn adopt(&mut self, thread: Pid) -> Result<(), Errno> {
        let read = described(thread);
        let untraced = |why: &dyn std::fmt::Display| {
            eprintln!("kcov-trace: thread {thread} ({}) is not traced: {why}", read.name);
        };
        let buffer = match (self.buffer(), Newborn::new(thread)?) {
            (Err(error), _) => {
                untraced(&error);
                None
            }
            (Ok(_), None) => {
                untraced(&"it was not made by a 64-bit program");
                None
            }
            (Ok(mut buffer), Some(mut newborn)) => {
                let enabled = enable(&mut newborn, buffer.device());
                newborn.restore()?;
                for signal in newborn.signals {
                    // Deliver the signal when the thread continues.
                    kill(thread, signal)?;
                }
                // Discard the records of the debugger's own calls.
                match enabled.and_then(|()| buffer.reset().map_err(|error| error.to_string())) {
                    Ok(()) => Some(buffer),
                    Err(why) => {
                        untraced(&why);
                        None
                    }
                }
            }
        };
        self.live.insert(thread, Live { buffer, read, stopping: false });
        ptrace::cont(thread, None)
    }

    /// Exec gives the calling thread its process's id and ends all other threads.
    fn renumber(&mut self, thread: Pid) -> Result<(), Errno> {
        let former = Pid::from_raw(ptrace::getevent(thread)? as i32);
        if former != thread {
            self.end(thread);
            if let Some(live) = self.live.remove(&former) {
                self.live.insert(thread, live);
            }
        }
        self.rename(thread);
        Ok(())
    }

    fn rename(&mut self, thread: Pid) {
        if let Some(live) = self.live.get_mut(&thread) {
            let Thread { process, number, name, .. } = described(thread);
            live.read = Thread { process, number, name, ..mem::take(&mut live.read) };
        }
    }

    /// Reads an ended thread's buffer. The kernel has disabled its device.
    fn end(&mut self, thread: Pid) {
        let Some(mut live) = self.live.remove(&thread) else {
            return;
        };
        let emptied = live.empty();
        let Some(buffer) = live.buffer else {
            return;
        };
        self.done.push(live.read);
        if emptied {
            self.spare.push(buffer);
        }
    }
}

impl Live {
    /// Moves the records out of the buffer of a thread that does not run. Returns whether it is
    /// empty now.
    fn empty(&mut self) -> bool {
        let Some(buffer) = &mut self.buffer else {
            return true;
        };
        let trace = buffer.trace();
        self.read.truncated |= trace.completeness() != Completeness::Complete;
        self.read.count(trace.iter());
        buffer.reset().is_ok()
    }
}

/// Makes a thread enable our device. The error names the failed operation.
fn enable(thread: &mut Newborn, device: &Device) -> Result<(), String> {
    let failed = |what: &'static str| move |errno: Errno| format!("{what}: {errno}");
    let (own, fd) = (getpid().as_raw() as u64, device.as_fd().as_raw_fd() as u64);
    let process = thread.call(libc::SYS_pidfd_open, [own, 0, 0]).map_err(failed("pidfd_open"))?;
    let fetched =
        thread.call(libc::SYS_pidfd_getfd, [process, fd, 0]).map_err(failed("pidfd_getfd"));
    // A failed close does not matter.
    let _ = thread.call(libc::SYS_close, [process, 0, 0]);
    let fetched = fetched?;
    let request = [fetched, u64::from(KCOV_ENABLE), u64::from(KCOV_TRACE_PC)];
    let enabled = thread.call(libc::SYS_ioctl, request).map_err(failed("KCOV_ENABLE"));
    let _ = thread.call(libc::SYS_close, [fetched, 0, 0]);
    enabled.map(drop)
}

/// A thread with its process and name, and no records.
fn described(thread: Pid) -> Thread {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let field = |key| status.lines().find_map(|line| line.strip_prefix(key));
    let process = field("Tgid:\t").and_then(|number| number.trim().parse().ok());
    let number = thread.as_raw();
    let name = field("Name:\t").unwrap_or_default().to_owned();
    Thread { process: process.unwrap_or(number), number, name, ..Thread::default() }
}
