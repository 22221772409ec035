//! Pins guests to a processor of the host.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many guests of this process use each processor.
static USED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn used() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a processor that a guest uses.
#[derive(Debug)]
pub struct Processor(usize);

impl Processor {
    /// Takes the processor with the fewest guests of this process. Returns `None` if the processors
    /// that this process may use are unknown.
    pub fn take() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut numbers: Vec<usize> =
            (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number)).collect();
        // Different processes start at different processors, so concurrent runs spread out.
        let first = process::id() as usize % numbers.len().max(1);
        numbers.rotate_left(first);
        let mut used = used();
        let number = numbers.into_iter().min_by_key(|number| used.get(number).copied())?;
        *used.entry(number).or_default() += 1;
        Some(Self(number))
    }

    /// Makes a command run on this processor only.
    pub fn pin(&self, command: &mut Command) {
        let mut only = CpuSet::new();
        only.set(self.0);
        // SAFETY: the closure makes one system call. It neither allocates nor takes a lock, so it
        // may run between fork and exec.
        unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &only)?)) };
    }
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

impl Drop for Processor {
    fn drop(&mut self) {
        if let Some(guests) = used().get_mut(&self.0) {
            *guests -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_spread_over_the_processors_and_stay_there() {
        let allowed = sched_getaffinity(None).expect("the processors").count() as usize;
        let taken: Vec<_> = (0..2 * allowed).map(|_| Processor::take().expect("one")).collect();
        for processor in &taken {
            assert_eq!(taken.iter().filter(|other| other.0 == processor.0).count(), 2);
            let mut command = Command::new("grep");
            command.args(["Cpus_allowed_list", "/proc/self/status"]);
            processor.pin(&mut command);
            let output = command.output().expect("grep runs").stdout;
            let text = String::from_utf8(output).expect("text");
            assert_eq!(text.split_whitespace().last(), Some(&*processor.0.to_string()));
        }
        let numbers: Vec<usize> = taken.iter().map(|processor| processor.0).collect();
        drop(taken);
        assert!(numbers.iter().all(|number| used()[number] == 0));
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
