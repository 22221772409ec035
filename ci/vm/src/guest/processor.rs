//! Pins guests to a processor of the host.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many guests of this process use each processor.
static USED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn used() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A processor that a guest uses.
#[derive(Debug)]
pub struct Processor {
    number: usize,
    /// Makes other runners prefer other processors.
    _claim: Option<UnixDatagram>,
}

impl Processor {
    /// Takes a processor that no runner has claimed, or else the one with the fewest guests of this
    /// process. Returns `None` if the processors that this process may use are unknown.
    pub fn take() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut numbers: Vec<usize> =
            (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number)).collect();
        let mut used = used();
        let claimed = numbers.iter().find_map(|&number| Some((number, claim(number).ok()?)));
        let (number, claim) = if let Some((number, claim)) = claimed {
            (number, Some(claim))
        } else {
            // Different processes start at different processors, so concurrent runs spread out.
            let first = process::id() as usize % numbers.len().max(1);
            numbers.rotate_left(first);
            let guests = |number: &usize| used.get(number).copied().unwrap_or(0);
            (numbers.into_iter().min_by_key(guests)?, None)
        };
        *used.entry(number).or_default() += 1;
        Some(Self { number, _claim: claim })
    }

    /// Makes a command run on this processor only.
    pub fn pin(&self, command: &mut Command) {
        let mut only = CpuSet::new();
        only.set(self.number);
        // SAFETY: the closure makes one system call. It neither allocates nor takes a lock, so it
        // may run between fork and exec.
        unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &only)?)) };
    }
}

/// Makes a command run only if no other program wants the processor.
pub fn make_idle(command: &mut Command) {
    let yields = || {
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel only reads `none`, which outlives the call.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call. It neither allocates nor takes a lock, so it may run
    // between fork and exec.
    unsafe { command.pre_exec(yields) };
}

impl Drop for Processor {
    fn drop(&mut self) {
        if let Some(guests) = used().get_mut(&self.number) {
            *guests -= 1;
        }
    }
}

/// Claims a processor for this process, by binding an abstract socket. Only one process can have the
/// name, and the kernel releases it at exit.
fn claim(number: usize) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("kcov-vm-processor-{number}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_spread_over_the_processors_and_stay_there() {
        let allowed = sched_getaffinity(None).expect("the processors").count() as usize;
        let taken: Vec<_> = (0..2 * allowed).map(|_| Processor::take().expect("one")).collect();
        for processor in &taken {
            assert_eq!(taken.iter().filter(|other| other.number == processor.number).count(), 2);
            let mut command = Command::new("grep");
            command.args(["Cpus_allowed_list", "/proc/self/status"]);
            processor.pin(&mut command);
            let output = command.output().expect("grep runs").stdout;
            let text = String::from_utf8(output).expect("text");
            assert_eq!(text.split_whitespace().last(), Some(&*processor.number.to_string()));
        }
        let numbers: Vec<usize> = taken.iter().map(|processor| processor.number).collect();
        drop(taken);
        assert!(numbers.iter().all(|number| used()[number] == 0));
    }

    #[test]
    fn an_idle_command_has_the_idle_policy() {
        let mut command = Command::new("cat");
        command.arg("/proc/self/stat");
        make_idle(&mut command);
        let output = String::from_utf8(command.output().expect("cat runs").stdout).expect("text");
        let policy = output.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(38));
        assert_eq!(policy, Some("5"), "{output}");
    }

    #[test]
    fn a_processor_is_claimed_once() {
        // A number that no machine has.
        let first = claim(CpuSet::MAX_CPU).expect("nobody has it");
        assert!(claim(CpuSet::MAX_CPU).is_err(), "it is claimed twice");
        drop(first);
        claim(CpuSet::MAX_CPU).expect("nobody has it any longer");
    }
}
