//! Where and when guests run on the host's processors.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of guests that this process has pinned.
static PINNED: AtomicUsize = AtomicUsize::new(0);

/// Makes a command run on one of the processors that this process may use. Guests take turns, and
/// different processes start at different processors.
pub fn pin(command: &mut Command) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let numbers: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|it| allowed.is_set(*it)).collect();
    let turn = process::id() as usize + PINNED.fetch_add(1, Ordering::Relaxed);
    let mut only = CpuSet::new();
    only.set(numbers[turn % numbers.len()]);
    // SAFETY: the closure makes one system call. It neither allocates nor takes a lock, so it may run
    // between fork and exec.
    unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &only)?)) };
}

/// From now on, this thread and what it starts run only if no other program wants the processor.
pub fn make_idle() -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel only reads `none`, which outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn guests_spread_over_the_processors_and_stay_there() {
        let allowed = sched_getaffinity(None).expect("the processors").count() as usize;
        let guest = |_| {
            let mut command = Command::new("grep");
            command.args(["Cpus_allowed_list", "/proc/self/status"]);
            pin(&mut command);
            let output = command.output().expect("grep runs").stdout;
            let text = String::from_utf8(output).expect("text");
            text.split_whitespace().last().expect("a number").parse::<usize>().expect("one")
        };
        // No other test pins guests.
        let taken: BTreeSet<usize> = (0..allowed).map(guest).collect();
        assert_eq!(taken.len(), allowed);
    }

    #[test]
    fn an_idle_thread_starts_idle_programs() {
        let policy = || {
            let mut command = Command::new("cat");
            let output = command.arg("/proc/self/stat").output().expect("cat runs").stdout;
            let text = String::from_utf8(output).expect("text");
            let words = text.rsplit_once(')').expect("a name").1.split_whitespace();
            words.map(String::from).nth(38).expect("a policy")
        };
        let idle = std::thread::spawn(move || make_idle().map(|()| policy()));
        assert_eq!(idle.join().expect("no panic").expect("it may"), "5");
    }
}
