//! Where a guest of User-Mode Linux loops. Its kernel is a process of the host, whose registers and
//! frames the runner reads. The kernel's own detector of lockups counts the host's time as well, so it
//! complains where the host is busy.

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

/// The number of looks, and the time between two.
const LOOKS: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);
/// The numbers of x86-64's registers. User-Mode Linux runs on no other host.
const RBP: usize = 4;
const RIP: usize = 16;
/// The most frames of a stack.
const DEEPEST: usize = 64;

/// A function: its address, size and name.
type Function = (u64, u64, String);

/// A place in a function: its number, and the offset.
type Place = (usize, u64);

/// Returns a report in the words of the kernel's own detector, or nothing if the process cannot be
/// traced. It names the innermost function that most looks find on the stack: the loop is in that one,
/// or in what it calls again and again.
pub fn report(process: u32, vmlinux: &Path, seconds: u64) -> Vec<String> {
    let functions = functions(vmlinux).unwrap_or_default();
    let stacks = stacks(process).unwrap_or_default();
    let named = |stack: &Vec<u64>| stack.iter().filter_map(|at| place(&functions, *at)).collect();
    let usual = usual(stacks.iter().map(named).collect());
    if usual.is_empty() {
        return Vec::new();
    }
    let first = [format!("BUG: soft lockup - CPU#0 stuck for {seconds}s!"), "Call Trace:".into()];
    let frames = usual.iter().map(|&(number, offset)| {
        let (address, size, name) = &functions[number];
        format!(" [<{:x}>] {name}+{offset:#x}/{size:#x}", address + offset)
    });
    first.into_iter().chain(frames).collect()
}

/// The functions of the kernel, by address.
fn functions(vmlinux: &Path) -> Option<Vec<Function>> {
    let bytes = fs::read(vmlinux).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let all = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    let all = all.filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_owned())));
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    Some(all)
}

/// The first byte does not count: on a report's stack that is a pointer to a function.
fn place(functions: &[Function], address: u64) -> Option<Place> {
    let number = functions.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
    let (start, size, _) = functions[number];
    (1..size).contains(&(address - start)).then_some((number, address - start))
}

/// The frames of functions that more than half of the looks found, the innermost first. Of equal
/// stacks it is the one at the lowest places: every turn of a loop has it.
fn usual(stacks: Vec<Vec<Place>>) -> Vec<Place> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for stack in &stacks {
        let functions: BTreeSet<usize> = stack.iter().map(|place| place.0).collect();
        functions.into_iter().for_each(|number| *counts.entry(number).or_default() += 1);
    }
    let half = stacks.len() / 2;
    let usual = stacks.into_iter().map(|mut stack| {
        stack.retain(|place| counts[&place.0] > half);
        stack
    });
    usual.min_by_key(|stack| (Reverse(stack.len()), stack.clone())).unwrap_or_default()
}

/// The program counter and the return addresses at each look.
fn stacks(process: u32) -> Option<Vec<Vec<u64>>> {
    let pid = Pid::from_raw(process.try_into().ok()?);
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let word = |address| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, address).ok().map(|()| u64::from_ne_bytes(bytes))
    };
    ptrace::seize(pid, Options::empty()).ok()?;
    let mut stacks = Vec::new();
    loop {
        // A signal may have stopped it already, and its handler is not what to look at.
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
        let register = |number: usize| ptrace::read_user(pid, without_provenance_mut(8 * number));
        let mut frame = register(RBP).ok()? as u64;
        let mut stack = vec![register(RIP).ok()? as u64];
        for _ in 0..DEEPEST {
            let (Some(next), Some(caller)) = (word(frame), word(frame.wrapping_add(8))) else {
                break;
            };
            stack.push(caller);
            frame = next;
        }
        stacks.push(stack);
        if stacks.len() == LOOKS {
            // Otherwise its next stop would look like its end.
            ptrace::detach(pid, signal).ok()?;
            break;
        }
        ptrace::cont(pid, signal).ok()?;
        sleep(PAUSE);
    }
    Some(stacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_is_in_the_innermost_function_of_most_looks() {
        let stacks = [
            vec![(7, 0x10), (2, 0x40), (1, 0x8), (0, 0x20)],
            vec![(2, 0x24), (1, 0x8), (0, 0x20)],
            // A hook that has no frame yet hides its caller.
            vec![(9, 0), (1, 0x8), (0, 0x20)],
            vec![(8, 4), (2, 0x30), (1, 0x8), (0, 0x20)],
        ];
        assert_eq!(usual(stacks.to_vec()), [(2, 0x24), (1, 0x8), (0, 0x20)]);
        assert_eq!(usual(vec![vec![(7, 0)], vec![(5, 1)]]), []);
        assert_eq!(usual(Vec::new()), []);

        let functions = [(0x100, 0x10, "a".to_owned()), (0x200, 0x20, "b".to_owned())];
        let of = |address| place(&functions, address);
        assert_eq!((of(0xff), of(0x100), of(0x10f), of(0x110)), (None, None, Some((0, 0xf)), None));
        assert_eq!((of(0x21f), of(0x220)), (Some((1, 0x1f)), None));
    }
}
