//! Other threads and processes.

use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Runs `body` in a new thread and returns when the thread has ended in the kernel too.
pub fn thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(body).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Runs `body` in a forked child and returns its result when the child has ended.
pub fn child<T: Serialize + DeserializeOwned>(body: impl FnOnce() -> T) -> T {
    Child::start(body).end()
}

/// A forked child that runs a closure. If nobody waits for it, it dies with the check.
pub struct Child<T> {
    /// The child's process.
    pub pid: Pid,
    result: File,
    of: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Child<T> {
    /// Forks. The calling process must be single-threaded.
    pub fn start(body: impl FnOnce() -> T) -> Child<T> {
        let (result, sender) = pipe().expect("a pipe");
        // SAFETY: checks fork while they are single-threaded, so no other thread holds a lock.
        match unsafe { fork() }.expect("a child") {
            ForkResult::Parent { child } => {
                Child { pid: child, result: result.into(), of: PhantomData }
            }
            ForkResult::Child => {
                drop(result);
                // A signal's frame may be larger than the stack of the standard library's handlers.
                for number in [Signal::SIGBUS, Signal::SIGSEGV] {
                    // SAFETY: the default action is not a handler, so it runs no code of this process.
                    unsafe { signal(number, SigHandler::SigDfl) }.expect("the default action");
                }
                // A panic must not unwind into the parent's part of the stack.
                let status = match catch_unwind(AssertUnwindSafe(body)) {
                    Ok(value) => {
                        let text = serde_json::to_vec(&value).expect("the result as text");
                        File::from(sender).write_all(&text).expect("the parent listens");
                        0
                    }
                    Err(_) => 101,
                };
                // SAFETY: `_exit` skips the exit handlers, which belong to the parent.
                unsafe { libc::_exit(status) }
            }
        }
    }

    /// Starts a child that runs `body` and then sleeps until it is killed.
    pub fn endless(body: impl FnOnce()) -> Child<T> {
        Child::start(|| {
            body();
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        })
    }

    #[track_caller]
    pub fn end(self) -> T {
        self.outcome().expect("the child ends well")
    }

    /// Waits for the child to end. Returns its result, or the signal that killed it.
    #[track_caller]
    pub fn outcome(mut self) -> Result<T, Signal> {
        let mut text = Vec::new();
        self.result.read_to_end(&mut text).expect("the result can be read");
        match waitpid(self.pid, None).expect("the child can be waited for") {
            WaitStatus::Signaled(_, signal, _) => Err(signal),
            status => {
                assert_eq!(status, WaitStatus::Exited(self.pid, 0), "the child ends well");
                Ok(serde_json::from_slice(&text).expect("the result of the child"))
            }
        }
    }

    /// Kills the child, and returns how it ended.
    pub fn kill(self) -> WaitStatus {
        kill(self.pid, Signal::SIGKILL).expect("it can be killed");
        loop {
            match waitpid(self.pid, None) {
                // By a signal that the child has sent.
                Err(nix::errno::Errno::EINTR) => {}
                result => break result.expect("the child can be waited for"),
            }
        }
    }
}

/// A gate between two threads. One blocks until the other opens it; waiting makes no other system
/// call.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn open(&self) {
        *self.open.lock().expect("the gate") = true;
        self.opened.notify_all();
    }

    /// Returns a guard that opens the gate when dropped.
    pub fn open_at_end(&self) -> impl Drop {
        struct AtEnd<'a>(&'a Gate);
        impl Drop for AtEnd<'_> {
            fn drop(&mut self) {
                self.0.open();
            }
        }
        AtEnd(self)
    }

    pub fn wait(&self) {
        let open = self.open.lock().expect("the gate");
        drop(self.opened.wait_while(open, |open| !*open).expect("the gate"));
    }
}
