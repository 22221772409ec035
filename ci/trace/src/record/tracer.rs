//! The debugger's loop: follows every thread from its first instruction to its end.

use super::inject::Newborn;
use super::{Ended, limit};
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
use std::{fs, io};

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
    process: i32,
    name: String,
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
    let status = limit
        .map_or(Ok(()), limit::set)
        .and_then(|()| tracer.follow(first))
        .map_err(|errno| Error::Unavailable(format!("ptrace of {shown}: {errno}")))?;
    let ended = match limit {
        Some(seconds) if limit::is_reached() => Ended::AtLimit(seconds),
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
        let (process, name) = described(first);
        self.live.insert(first, Live { buffer: Some(buffer), process, name });
        Ok(first)
    }

    /// Follows all threads until none is left.
    fn follow(&mut self, first: Pid) -> Result<u8, Errno> {
        let mut result = 0;
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::EINTR) => {
                    self.kill_all_at_limit();
                    continue;
                }
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
    fn kill_all_at_limit(&self) {
        if limit::is_reached() {
            for thread in self.live.keys() {
                // An ended thread needs no signal.
                let _ = kill(*thread, Signal::SIGKILL);
            }
        }
    }

    /// Adopts a new thread of a traced one.
    fn adopt(&mut self, thread: Pid) -> Result<(), Errno> {
        let (process, name) = described(thread);
        let untraced = |why: &dyn std::fmt::Display| {
            eprintln!("kcov-trace: thread {thread} ({name}) is not traced: {why}");
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
        self.live.insert(thread, Live { buffer, process, name });
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
            (live.process, live.name) = described(thread);
        }
    }

    /// Reads an ended thread's buffer. The kernel has disabled its device.
    fn end(&mut self, thread: Pid) {
        let Some(Live { buffer: Some(mut buffer), process, name }) = self.live.remove(&thread)
        else {
            return;
        };
        let trace = buffer.trace();
        let truncated = trace.completeness() != Completeness::Complete;
        let mut done =
            Thread { process, number: thread.as_raw(), name, truncated, ..Thread::default() };
        done.count(trace.iter());
        self.done.push(done);
        if buffer.reset().is_ok() {
            self.spare.push(buffer);
        }
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

/// Returns a thread's process and name.
fn described(thread: Pid) -> (i32, String) {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let field = |key| status.lines().find_map(|line| line.strip_prefix(key));
    let process = field("Tgid:\t").and_then(|number| number.trim().parse().ok());
    let name = field("Name:\t").unwrap_or_default();
    (process.unwrap_or_else(|| thread.as_raw()), name.to_owned())
}
