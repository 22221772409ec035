//! Finds the function in which a User-Mode Linux guest loops.
//!
//! The guest's kernel is a process of the host, so the runner can sample its stack. The kernel's own
//! detector of soft lockups also counts the time in which the host runs other programs, so it reports
//! lockups on a busy host that are none.

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::ptr::without_provenance_mut;
use std::thread::sleep;
use std::time::Duration;

/// The number of samples, and the time between two.
const SAMPLES: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);
/// The largest number of frames in a sample.
const DEEPEST: usize = 64;
/// The indices of two registers in x86-64's `struct user_regs_struct`. User-Mode Linux boots on no
/// other host.
const RBP: usize = 4;
const RIP: usize = 16;

/// The size and name of each function, by its address.
type Functions<'a> = BTreeMap<u64, (u64, &'a str)>;

/// A frame: the address of its function, and the offset in it.
type Frame = (u64, u64);

/// Samples the stack of the guest's process, and returns a report in the words of the kernel's own
/// detector. Its innermost function is the one that loops, or one that the loop calls most of the time.
/// Returns [`None`] if the process cannot be traced, or if its samples have no function in common.
pub fn report(process: u32, vmlinux: &Path, seconds: u64) -> Option<Vec<String>> {
    let bytes = fs::read(vmlinux).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let symbols = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    let functions: Functions<'_> =
        symbols.filter_map(|s| Some((s.address(), (s.size(), s.name().ok()?)))).collect();
    let frames = |stack: &Vec<u64>| stack.iter().filter_map(|at| frame(&functions, *at)).collect();
    let common = common(samples(process)?.iter().map(frames).collect())?;
    let first = [format!("BUG: soft lockup - CPU#0 stuck for {seconds}s!"), "Call Trace:".into()];
    let frames = common.iter().map(|(start, offset)| {
        let (size, name) = functions[start];
        format!(" [<{:x}>] {name}+{offset:#x}/{size:#x}", start + offset)
    });
    Some(first.into_iter().chain(frames).collect())
}

/// Returns the frame of an address. A function's first byte has none, because a report's reader takes
/// such an address for a pointer to the function.
fn frame(functions: &Functions<'_>, address: u64) -> Option<Frame> {
    let (start, (size, _)) = functions.range(..address).next_back()?;
    (address - start < *size).then_some((*start, address - start))
}

/// Returns the frames, the innermost first, of those functions that are in more than half of the
/// samples. If samples differ, the one with the most of these functions counts, and then the one with
/// the lowest addresses, so that guests with the same loop have the same report.
fn common(stacks: Vec<Vec<Frame>>) -> Option<Vec<Frame>> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for stack in &stacks {
        let functions: BTreeSet<u64> = stack.iter().map(|(start, _)| *start).collect();
        functions.into_iter().for_each(|start| *counts.entry(start).or_default() += 1);
    }
    let half = stacks.len() / 2;
    let stacks = stacks.into_iter().map(|mut stack| {
        stack.retain(|(start, _)| counts[start] > half);
        stack
    });
    let common = stacks.min_by_key(|stack| (Reverse(stack.len()), stack.clone()));
    common.filter(|stack| !stack.is_empty())
}

/// Returns the samples: the program counter and the return addresses, by the frame pointers.
fn samples(process: u32) -> Option<Vec<Vec<u64>>> {
    let pid = Pid::from_raw(process.try_into().ok()?);
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let word = |address| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, address).ok().map(|()| u64::from_ne_bytes(bytes))
    };
    let register = |index: usize| {
        let value = ptrace::read_user(pid, without_provenance_mut(8 * index));
        value.map(|value| value as u64).ok()
    };
    ptrace::seize(pid, Options::empty()).ok()?;
    let mut samples = Vec::new();
    loop {
        // A process that a signal has stopped needs no interrupt, which would then stop it again in the
        // signal's handler.
        let mut status = waitpid(pid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)).ok()?;
        if status == WaitStatus::StillAlive {
            ptrace::interrupt(pid).ok()?;
            status = waitpid(pid, Some(WaitPidFlag::__WALL)).ok()?;
        }
        let signal = match status {
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::PtraceEvent(..) => None,
            _ => return None,
        };
        let (mut stack, mut frame) = (vec![register(RIP)?], register(RBP)?);
        while let (Some(next), Some(caller)) = (word(frame), word(frame.wrapping_add(8))) {
            stack.push(caller);
            frame = next;
            if stack.len() > DEEPEST {
                break;
            }
        }
        samples.push(stack);
        if samples.len() == SAMPLES {
            // As long as it is traced, waitid(2) also returns when it stops, which is not its end.
            ptrace::detach(pid, signal).ok()?;
            return Some(samples);
        }
        ptrace::cont(pid, signal).ok()?;
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_is_in_the_innermost_function_of_most_samples() {
        let stacks = [
            vec![(7, 0x10), (2, 0x40), (1, 0x8), (0, 0x20)],
            vec![(2, 0x24), (1, 0x8), (0, 0x20)],
            // A hook that has no frame yet hides its caller.
            vec![(9, 1), (1, 0x8), (0, 0x20)],
            vec![(8, 4), (2, 0x30), (1, 0x8), (0, 0x20)],
        ];
        assert_eq!(common(stacks.to_vec()), Some(vec![(2, 0x24), (1, 0x8), (0, 0x20)]));
        assert_eq!(common(vec![vec![(7, 1)], vec![(5, 1)]]), None);
        assert_eq!(common(Vec::new()), None);

        let functions = Functions::from([(0x100, (0x10, "a")), (0x200, (0x20, "b"))]);
        let of = |address| frame(&functions, address);
        assert_eq!((of(0xff), of(0x100), of(0x110)), (None, None, None));
        assert_eq!(
            (of(0x10f), of(0x21f), of(0x220)),
            (Some((0x100, 0xf)), Some((0x200, 0x1f)), None)
        );
    }
}
