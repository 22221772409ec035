//! PID 1 of a guest: mounts file systems, runs the job's program, sends frames,
//! shuts down.
//!
//! Every error becomes a `fail` frame. Before the channel is open, errors go to
//! the console.

use kcov_vm_guest::job::{self, Job, Mount, Shutdown};
use kcov_vm_guest::protocol::{CHUNK, Exit, Frame};
use kcov_vm_guest::sys;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, ioctl_tiocsctty, kill_process_group, setsid, wait,
};
use rustix::stdio::stdin;
use rustix::system::uname;
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let mut shutdown = Shutdown::PowerOff;
    if let Err(reason) = run(&mut shutdown) {
        eprintln!("kcov-vm-init: {reason}");
        // A host without a report would not end the guest either.
        if shutdown == Shutdown::Wait {
            shutdown = Shutdown::Restart;
        }
    }
    if let Err(error) = sys::go_down(shutdown) {
        eprintln!("kcov-vm-init: reboot: {error}");
    }
}

/// Fails only before the channel is open. It sends later errors over the
/// channel.
fn run(shutdown: &mut Shutdown) -> Result<(), String> {
    sys::begin().map_err(|e| format!("cannot begin: {e}"))?;
    let context = |error: io::Error| format!("{}: {error}", job::PATH);
    let text = fs::read_to_string(job::PATH).map_err(context)?;
    let job = Job::decode(&text)?;
    *shutdown = job.shutdown;
    // The program must not see the nonce.
    fs::remove_file(job::PATH).map_err(context)?;

    // The channel is a device file, so /dev comes first.
    let (first, later): (Vec<_>, Vec<_>) = job.mounts.iter().partition(|m| m.target == "/dev");
    let early = first.into_iter().try_for_each(attach);
    let channel = Channel::open(&job)?;
    // Few programs need it, and a kernel may lack it.
    let _ = sys::raise_loopback();
    let done = early
        .and_then(|()| later.into_iter().try_for_each(attach))
        .and_then(|()| sys::furnish().map_err(|e| format!("cannot furnish the system: {e}")))
        .and_then(|()| boot(&job, &channel));
    if let Err(reason) = done {
        channel.send(&Frame::Fail(reason));
    }
    channel.send(&Frame::End);
    channel.drain();
    Ok(())
}

fn boot(job: &Job, channel: &Channel) -> Result<(), String> {
    let system = uname();
    channel.send(&Frame::Boot {
        release: system.release().to_string_lossy().into_owned(),
        machine: system.machine().to_string_lossy().into_owned(),
    });
    if job.argv.is_empty() {
        return Ok(());
    }
    channel.send(&Frame::Start);
    let exit = program(job, channel)?;
    if let Some(root) = &job.send_back {
        let root = Path::new(root);
        send_back(root, root, channel).map_err(|e| format!("{}: {e}", root.display()))?;
    }
    channel.send(&Frame::Exit(exit));
    Ok(())
}

fn attach(point: &Mount) -> Result<(), String> {
    let known = Path::new(&point.target).exists();
    let done = fs::create_dir_all(&point.target).and_then(|()| sys::mount(point));
    if done.is_err() && !known {
        let _ = fs::remove_dir(&point.target);
    }
    match done {
        Err(error) if !point.optional => {
            Err(format!("cannot mount {} on {}: {error}", point.kind, point.target))
        }
        _ => Ok(()),
    }
}

/// Runs the program until it and all its children have ended.
fn program(job: &Job, channel: &Channel) -> Result<Exit, String> {
    let name = job.argv[0].to_string_lossy();
    if !Path::new(&job.cwd).is_dir() {
        let here = Path::new(&job.cwd).display();
        return Err(format!("the guest has no directory {here} to run {name} in; cd elsewhere"));
    }
    let mut command = Command::new(&job.argv[0]);
    let command = command
        .arg0(job.word.as_ref().unwrap_or(&job.argv[0]))
        .args(&job.argv[1..])
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&job.cwd);
    let pipes = match &job.terminal {
        Some(terminal) => on_terminal(command, terminal).map(|()| Vec::new()),
        None => on_pipes(command, job),
    };
    let pipes = pipes.map_err(|e| format!("cannot prepare {name}: {e}"))?;
    let child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
    let outputs = pipes.into_iter().map(|(pipe, frame)| channel.forward(pipe, frame));
    let outputs: Vec<_> = outputs.collect();
    // The command holds our copies of the pipes' other ends.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());

    // `child.wait()` would not reap orphans of the program.
    let pid = Pid::from_child(&child);
    let exit = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((reaped, status))) if reaped == pid => match status.exit_status() {
                Some(number) => break Exit::Status(number),
                None => break Exit::Signal(status.terminating_signal().unwrap_or(0)),
            },
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("cannot wait for {name}: {error}")),
        }
    };
    // Every remaining process belongs to the program. When they are gone, no
    // writer holds the pipes, and the forwarding threads end.
    kill_everything();
    while !matches!(wait(WaitOptions::empty()), Err(rustix::io::Errno::CHILD)) {}
    for thread in outputs {
        thread.join().map_err(|_| "a thread that forwards output died".to_string())?;
    }
    Ok(exit)
}

/// The end of a program's output, and the frame for it.
type Output = (File, fn(Vec<u8>) -> Frame);

/// Gives the program its standard input and pipes for its output.
fn on_pipes(command: &mut Command, job: &Job) -> io::Result<Vec<Output>> {
    let (out, for_out) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut pipes: Vec<Output> = vec![(out.into(), Frame::Out)];
    let for_err = if job.one_output {
        for_out.try_clone()?
    } else {
        let (err, for_err) = pipe_with(PipeFlags::CLOEXEC)?;
        pipes.push((err.into(), Frame::Err));
        for_err
    };
    command.stdin(input(job)?).stdout(for_out).stderr(for_err);
    Ok(pipes)
}

/// The program's standard input. The program cannot open its file again.
fn input(job: &Job) -> io::Result<Stdio> {
    let Some(path) = &job.stdin else { return Ok(Stdio::null()) };
    let file = File::open(path)?;
    fs::remove_file(path)?;
    Ok(file.into())
}

/// Makes the program the leader of a session on this terminal.
fn on_terminal(command: &mut Command, terminal: &str) -> io::Result<()> {
    let line = File::options().read(true).write(true).open(terminal)?;
    command.stdin(line.try_clone()?).stdout(line.try_clone()?).stderr(line);
    let before_exec = || {
        setsid()?;
        ioctl_tiocsctty(stdin())?;
        Ok(())
    };
    // SAFETY: the closure makes two system calls. It neither allocates nor takes a lock, so it may
    // run between fork and exec.
    unsafe { command.pre_exec(before_exec) };
    Ok(())
}

/// Sends the regular files of a directory. Other files mean nothing on the host.
fn send_back(root: &Path, directory: &Path, channel: &Channel) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            send_back(root, &path, channel)?;
        } else if kind.is_file() {
            let mode = entry.metadata()?.permissions().mode() & 0o777;
            let name = path.strip_prefix(root).unwrap_or(&path).into();
            channel.send(&Frame::File { path: name, mode });
            let mut file = File::open(&path)?;
            let mut chunk = [0; CHUNK];
            loop {
                match file.read(&mut chunk)? {
                    0 => break,
                    count => channel.send(&Frame::Data(chunk[..count].to_vec())),
                }
            }
        }
    }
    Ok(())
}

/// `kill(-1)`: kills every process but the caller. In rustix this is the group
/// of PID 1.
fn kill_everything() {
    match kill_process_group(Pid::INIT, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => eprintln!("kcov-vm-init: kill: {error}"),
    }
}

/// The serial line to the host.
#[derive(Clone)]
struct Channel {
    line: Arc<Mutex<File>>,
    nonce: Arc<str>,
}

impl Channel {
    fn open(job: &Job) -> Result<Self, String> {
        let context = |error: io::Error| format!("{}: {error}", job.channel);
        let line = sys::open_channel(&job.channel).map_err(context)?;
        // Raw mode, because the line discipline would expand each line feed to
        // two bytes.
        let mut settings = tcgetattr(&line).map_err(|e| context(e.into()))?;
        settings.make_raw();
        tcsetattr(&line, OptionalActions::Now, &settings).map_err(|e| context(e.into()))?;
        Ok(Self { line: Arc::new(Mutex::new(line)), nonce: job.nonce.as_str().into() })
    }

    /// An error is only logged: if the host does not listen, its time limit ends
    /// the run.
    fn send(&self, frame: &Frame) {
        let mut line = self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Err(error) = line.write_all(frame.encode(&self.nonce).as_bytes()) {
            eprintln!("kcov-vm-init: channel: {error}");
        }
    }

    fn drain(&self) {
        let line = self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = tcdrain(&*line);
    }

    /// Sends the data from `pipe` until its last writer is gone.
    fn forward(
        &self,
        mut pipe: impl Read + Send + 'static,
        frame: fn(Vec<u8>) -> Frame,
    ) -> thread::JoinHandle<()> {
        let channel = self.clone();
        thread::spawn(move || {
            let mut chunk = [0; CHUNK];
            loop {
                match pipe.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(count) => channel.send(&frame(chunk[..count].to_vec())),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        })
    }
}
