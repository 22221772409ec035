//! Collects coverage with a debugger that makes each thread enable kcov for itself.
//!
//! The kernel traces single threads, and children do not inherit it. The first thread enables kcov
//! before it starts the command, and stays traced across exec(2). The debugger stops every later
//! thread and process before it runs. It makes the thread fetch a file descriptor of a device that
//! is open and mapped here (pidfd_getfd(2)), enable the device and close the descriptor again. The
//! command needs no library for this, and finds no file descriptor and no memory of it.
//!
//! The debugger itself enables remote coverage with a handle, which the command inherits. So it
//! also gets what the kernel's workers do for the command.

mod devices;
mod inject;

use crate::coverage::{Coverage, Thread};
use crate::error::Error;
use crate::modules::Modules;
use devices::{Background, Buffer};
use inject::Newborn;
use kcov_signal::KernelText;
use kcov_sys::linux::{KCOV_ENABLE, KCOV_TRACE_PC};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{
    SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, kill, sigaction,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::time::ClockId;
use nix::unistd::{Pid, getpid};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, mem};

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// By itself, with this status as a shell reports it.
    ByItself(u8),
    /// The limit of so many seconds ended it.
    AtLimit(u32),
}

/// The events at which threads stop.
const EVENTS: Options = Options::PTRACE_O_TRACECLONE
    .union(Options::PTRACE_O_TRACEFORK)
    .union(Options::PTRACE_O_TRACEVFORK)
    .union(Options::PTRACE_O_TRACEEXEC)
    .union(Options::PTRACE_O_TRACEEXIT)
    .union(Options::PTRACE_O_TRACESYSGOOD)
    .union(Options::PTRACE_O_EXITKILL);

/// The debugger's state of the threads.
struct Tracer {
    words: u64,
    live: HashMap<Pid, Live>,
    /// Buffers of ended threads, for reuse.
    spare: Vec<Buffer>,
    done: Vec<Thread>,
    /// `None` if it cannot be collected.
    background: Option<Background>,
    missing: Missing,
}

/// What is not traced: the reason, the first that it concerns, and the number of others.
#[derive(Default)]
struct Missing(Vec<(String, String, usize)>);

/// A thread that has not ended.
struct Live {
    /// `None` if it cannot be traced.
    buffer: Option<Buffer>,
    /// The records that were already read from the buffer.
    read: Thread,
    /// Whether it was told to stop, so that its buffer can be emptied.
    stopping: bool,
}

/// Runs a command until it and all its children have ended, or until the time limit. Adds its
/// coverage and returns how it ended.
pub fn run(
    command: &[OsString],
    words: u64,
    limit: Option<u32>,
    coverage: &mut Coverage,
) -> Result<Ended, Error> {
    let shown = Path::new(&command[0]).display();
    let failed = |errno| Error::about(format_args!("ptrace of {shown}"), errno);
    let buffer = Buffer::open(words)?;
    let mut missing = Missing::default();
    // Before the command starts, which inherits the handle.
    let background = Background::start(words);
    let background = missing.unless("work of io_uring's and vhost's workers", background);
    if background.is_some() && before_7_2(&coverage.kernel.release) {
        let why = "it takes Linux 7.2 or later";
        missing.0.push((why.into(), "work of io_uring's workers".into(), 0));
    }
    let (live, spare, done) = (HashMap::new(), Vec::new(), Vec::new());
    let mut tracer = Tracer { words, live, spare, done, background, missing };
    let first = tracer.start(command, buffer)?;
    let clock = Clock::start(limit).map_err(failed)?;
    let status = tracer.follow(first, &clock).map_err(failed)?;
    coverage.threads = tracer.done;
    coverage.threads.extend(tracer.background.and_then(Background::finish));
    coverage.missing = tracer.missing.lines();
    // A kernel without modules lacks this file.
    coverage.modules = Modules::parse(&fs::read_to_string("/proc/modules").unwrap_or_default());
    // The kernel hides it from unprivileged processes.
    coverage.slide = KernelText::read().ok().map(|text| text.kaslr_offset());
    Ok(match limit {
        Some(seconds) if clock.is_over() => Ended::AtLimit(seconds),
        _ => Ended::ByItself(status),
    })
}

impl Missing {
    /// Tells the user at once, unless it is known for this reason.
    fn add(&mut self, what: &str, why: &str) {
        match self.0.iter_mut().find(|(known, ..)| known == why) {
            Some((.., others)) => *others += 1,
            None => {
                eprintln!("kcov-trace: {what} is not traced: {why}");
                self.0.push((why.to_owned(), what.to_owned(), 0));
            }
        }
    }

    fn unless<T>(&mut self, what: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|why| self.add(what, &why)).ok()
    }

    fn lines(self) -> Vec<String> {
        let line = |(why, what, others): (String, String, usize)| match others {
            0 => format!("{what}: {why}"),
            _ => format!("{what} and {others} more: {why}"),
        };
        self.0.into_iter().map(line).collect()
    }
}

impl Tracer {
    fn buffer(&mut self) -> Result<Buffer, String> {
        match self.spare.pop() {
            Some(buffer) => Ok(buffer),
            None => Buffer::open(self.words),
        }
    }

    /// Starts the command, which stops before its first instruction.
    fn start(&mut self, command: &[OsString], buffer: Buffer) -> Result<Pid, Error> {
        let shown = Path::new(&command[0]).display();
        let fd = buffer.fd();
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
        // The command stops at its exec, which has completed by now.
        let begin = || {
            waitpid(first, None)?;
            ptrace::setoptions(first, EVENTS)?;
            ptrace::cont(first, None)
        };
        begin().map_err(|errno| Error::about(format_args!("ptrace of {shown}"), errno))?;
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
        if let Some(Err(why)) = self.background.as_mut().map(Background::empty_full) {
            self.missing.add("later work of io_uring's and vhost's workers", &why);
        }
        for live in self.live.values_mut() {
            let records = live.buffer.as_ref().map_or(0, Buffer::records);
            if !live.stopping && records > self.words / 2 {
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
        let mut buffer = self.buffer();
        if let Ok(open) = &mut buffer {
            let enabled = enable(thread, open.fd())?;
            // Discard the records of the debugger's own calls.
            if let Err(why) = enabled.map(|()| open.forget()) {
                buffer = Err(why);
            }
        }
        let buffer = self.missing.unless(&format!("thread {thread} ({})", read.name), buffer);
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
        self.buffer.as_mut().is_none_or(|buffer| buffer.empty(&mut self.read))
    }
}

/// Makes a new thread enable our device. The inner error says why it cannot.
fn enable(thread: Pid, device: RawFd) -> Result<Result<(), String>, Errno> {
    let Some(mut newborn) = Newborn::new(thread)? else {
        return Ok(Err("it was not made by a 64-bit program".into()));
    };
    // A filter may kill the thread for our calls. The next options end this one.
    let suspended = EVENTS | Options::from_bits_retain(libc::PTRACE_O_SUSPEND_SECCOMP);
    if has_filter(thread) && ptrace::setoptions(thread, suspended).is_err() {
        return Ok(Err("it has a seccomp(2) filter, which only CAP_SYS_ADMIN and a kernel with \
                       CONFIG_CHECKPOINT_RESTORE=y can suspend"
            .into()));
    }
    let enabled = ask(&mut newborn, device);
    newborn.restore()?;
    ptrace::setoptions(thread, EVENTS)?;
    for signal in newborn.signals {
        // Deliver the signal when the thread continues.
        kill(thread, signal)?;
    }
    Ok(enabled)
}

/// Makes the thread's calls. The error names the failed one.
fn ask(thread: &mut Newborn, device: RawFd) -> Result<(), String> {
    let failed = |what: &'static str| move |errno: Errno| format!("{what}: {errno}");
    let (own, fd) = (getpid().as_raw() as u64, device as u64);
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

/// Whether a release is before 7.2, which made io_uring's workers use the handle.
fn before_7_2(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version < (7, 2))
}

/// Whether a filter decides on a thread's system calls.
fn has_filter(thread: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:\t").is_some_and(|mode| mode != "0"))
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

/// Between two signals. Longer periods let threads fill their buffers.
const PERIOD: Duration = Duration::from_millis(5);

/// A timer whose signal interrupts waiting once per period, and the time limit.
struct Clock {
    _timer: Timer,
    end: Option<Instant>,
}

static TICKED: AtomicBool = AtomicBool::new(false);

extern "C" fn tick(_: libc::c_int) {
    TICKED.store(true, Ordering::Relaxed);
}

impl Clock {
    /// Starts the timer, and the time until the limit in seconds.
    fn start(limit: Option<u32>) -> Result<Clock, Errno> {
        let action = SigAction::new(SigHandler::Handler(tick), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler stores to an atomic, which is safe in a handler.
        unsafe { sigaction(Signal::SIGALRM, &action) }?;
        let notify = SigevNotify::SigevSignal { signal: Signal::SIGALRM, si_value: 0 };
        let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify))?;
        timer.set(Expiration::Interval(PERIOD.into()), TimerSetTimeFlags::empty())?;
        let end = limit.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        Ok(Clock { _timer: timer, end })
    }

    /// Whether a period has ended since the last call.
    fn has_ticked(&self) -> bool {
        TICKED.swap(false, Ordering::Relaxed)
    }

    /// Whether the limit has passed.
    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}
