//! The guest as a host process: starts it, reads its output, ends it.

use super::watch::{Ending, Watch};
use super::{Finished, Listener};
use crate::error::{Phase, Unavailable};
use crate::lines::Lines;
use crate::run::ends_with_us;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The prefix of the host side's lines in a failure's detail.
pub const HOST_SAYS: &str = "its standard error: ";
/// The interval for checking whether the process has ended.
const TICK: Duration = Duration::from_millis(20);
/// The terminal's character for the end of input.
const END_OF_TRANSMISSION: u8 = 4;
/// The interval for reading its processor time.
const LOOK: Duration = Duration::from_millis(500);
/// The time for the last bytes to arrive after the end.
const DRAIN: Duration = Duration::from_secs(1);

/// The ends of the pipe behind a guest's second serial line. User-Mode Linux cannot poll a file.
pub type Line = (OwnedFd, OwnedFd);

enum Event {
    Console(Vec<u8>),
    Channel(Vec<u8>),
    Closed,
}

/// Runs the command until it ends or the watch's deadline passes. Its standard
/// output is the console, and `line` is the channel. With `input`, the console
/// takes this process's standard input.
pub fn run(
    command: Command,
    line: Line,
    mut watch: Watch<'_>,
    logs: &Path,
    listener: &mut dyn Listener,
    input: bool,
) -> Result<Finished, Unavailable> {
    let context = |error: io::Error| Unavailable::new(Phase::Image, error.to_string());
    let mut console_log = File::create(logs.join("console.log")).map_err(context)?;
    let mut channel_log = File::create(logs.join("channel.log")).map_err(context)?;
    let host_log = logs.join("host.log");
    let (mut guest, events) = Guest::start(command, line, &host_log, input)?;
    listener.started(guest.child.id());

    let mut console = Lines::default();
    let mut open = 2;
    let mut gone: Option<Instant> = None;
    let mut looked = Instant::now();
    while open > 0 {
        let now = Instant::now();
        if now >= looked + LOOK {
            looked = now;
            watch.used(guest.processor_time(), || guest.waited(), now);
        }
        match gone {
            Some(since) if now >= since + DRAIN => break,
            None if now >= watch.deadline() && !watch.excuse(guest.waited(), now) => break,
            None if guest.has_ended() => {
                guest.kill_group();
                gone = Some(now);
            }
            _ => {}
        }
        let may_go_on = listener.running();
        if listener.is_closed() {
            guest.end();
            return watch.finish(Ending::Unread);
        }
        if !may_go_on {
            break;
        }
        let event = match events.recv_timeout(TICK) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let now = Instant::now();
        // A log that cannot be written must not cost the verdict.
        match event {
            Event::Console(bytes) => {
                let _ = console_log.write_all(&bytes);
                listener.terminal(&bytes);
                // A program on the console may print anything.
                if input && watch.has_booted() {
                    continue;
                }
                console.feed(&bytes, |line| {
                    let line = String::from_utf8_lossy(line);
                    listener.console(line.trim_end());
                    watch.console(line.trim_end(), now);
                });
            }
            Event::Channel(bytes) => {
                let _ = channel_log.write_all(&bytes);
                watch.channel(&bytes, listener, now);
            }
            Event::Closed => open -= 1,
        }
    }
    // Both lines are closed, so the process is about to end.
    while open == 0 && Instant::now() < watch.deadline() && !guest.has_ended() {
        thread::sleep(TICK);
    }
    console.end(|line| watch.console(&String::from_utf8_lossy(line), Instant::now()));
    watch.used(guest.processor_time(), || guest.waited(), Instant::now());
    if watch.is_silent {
        listener.silent();
    }
    let ending = guest.end();
    watch.finish(ending).map_err(|failure| match failure.phase {
        // The host side's messages matter only until the guest reports.
        Phase::Boot => said_by_host(failure, &host_log),
        _ => failure,
    })
}

fn said_by_host(failure: Unavailable, log: &Path) -> Unavailable {
    const MOST: usize = 3;
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(MOST)..];
    let last = last.iter().map(|line| format!("{HOST_SAYS}{line}"));
    let detail = failure.detail.iter().cloned().chain(last).collect();
    failure.detail(detail)
}

/// The process group of the guest's process.
struct Guest {
    child: Child,
    pid: Pid,
}

impl Guest {
    fn start(
        mut command: Command,
        line: Line,
        host_log: &Path,
        input: bool,
    ) -> Result<(Self, Receiver<Event>), Unavailable> {
        let name = command.get_program().to_string_lossy().into_owned();
        let context = |error: io::Error| Unavailable::new(Phase::Image, format!("{name}: {error}"));
        let (read, write) = line;
        command
            .stdin(if input { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(File::create(host_log).map_err(context)?)
            .process_group(0);
        // Its own group does not receive the terminal's Ctrl-C.
        ends_with_us(&mut command, Signal::KILL);
        // The only file descriptor that the guest inherits.
        let before_exec = move || Ok(fcntl_setfd(&write, FdFlags::empty())?);
        // SAFETY: the closure makes one system call. It neither allocates nor takes a lock, so it
        // may run between fork and exec.
        unsafe { command.pre_exec(before_exec) };
        let mut child = command.spawn().map_err(context)?;
        // The command holds our copy of the write end. The channel would never
        // close while it exists.
        drop(command);
        let pid = Pid::from_child(&child);
        // The guest is in the background of our terminal, so it cannot read it.
        if let Some(mut console) = child.stdin.take() {
            thread::spawn(move || {
                let copied = io::copy(&mut io::stdin(), &mut console);
                // The end of our input is the end of the terminal's input, but no hangup.
                let _ = copied.and_then(|_| console.write_all(&[END_OF_TRANSMISSION]));
                std::mem::forget(console);
            });
        }
        let (sender, events) = sync_channel(64);
        if let Some(console) = child.stdout.take() {
            forward(console, sender.clone(), Event::Console);
        }
        forward(File::from(read), sender, Event::Channel);
        Ok((Self { child, pid }, events))
    }

    /// Whether the process has ended. It is not reaped yet, so its number still
    /// names its group and nothing else.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)))
    }

    /// The processor time of all threads of the process.
    fn processor_time(&self) -> Duration {
        let stat = stat(&PathBuf::from(format!("/proc/{}", self.child.id())));
        let ticks: u64 =
            stat.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1000 / clock_ticks_per_second().max(1))
    }

    /// How long the threads of its process group have waited for a processor of the host.
    fn waited(&self) -> Duration {
        let own = self.child.id().to_string();
        let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
        // The state, the parent and the group.
        let is_own = |process: &Path| stat(process).get(2) == Some(&own);
        let processes = entries(Path::new("/proc")).map(|entry| entry.path());
        let threads = processes.filter(|path| is_own(path)).flat_map(|p| entries(&p.join("task")));
        let waited = threads.filter_map(|thread| {
            let times = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            times.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        Duration::from_nanos(waited.sum())
    }

    fn kill_group(&self) {
        // Fails only if the group is empty.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }

    fn end(&mut self) -> Ending {
        let by_itself = self.has_ended();
        self.kill_group();
        match self.child.wait() {
            Ok(status) if by_itself => Ending::Gone(status.to_string().replace(": ", " ")),
            _ => Ending::Stopped,
        }
    }
}

/// The fields of a process from the third on. The second is the name, in parentheses, which may
/// contain anything.
fn stat(process: &Path) -> Vec<String> {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().map(String::from).collect()
}

impl Drop for Guest {
    fn drop(&mut self) {
        // After `end` the child is reaped, and its number may name another process.
        if let Ok(None) = self.child.try_wait() {
            self.kill_group();
            let _ = self.child.wait();
        }
    }
}

fn forward(
    mut from: impl Read + Send + 'static,
    to: SyncSender<Event>,
    event: fn(Vec<u8>) -> Event,
) {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        loop {
            match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) if to.send(event(bytes[..count].to_vec())).is_err() => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = to.send(Event::Closed);
    });
}
