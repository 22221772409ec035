//! Finds an input that the kernel accepts, guided by its comparisons: a control message of
//! sendmsg(2) that passes credentials. The kernel compares its length, level and type, the length
//! again, and the process id, with 8, 4, 4, 8 and 4 bytes. The example knows neither these places
//! nor the values.
use kcov::mode::AnyMode;
use kcov::{AnyRecord, Comparison, Device, Session};
use nix::libc;
use std::collections::{HashSet, VecDeque};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process;

/// Level and type of the message: `SOL_SOCKET` and `SCM_CREDENTIALS` on Linux. The example uses
/// them only to detect that it is done.
const GOAL: [u32; 2] = [1, 2];

/// Makes the system call and returns its result.
fn send(control: &mut [u8]) -> io::Result<()> {
    let (one, mut other) = UnixStream::pair()?;
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: an all-zero `msghdr` is valid and empty.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut data, 1);
    (message.msg_control, message.msg_controllen) =
        (control.as_mut_ptr().cast(), control.len() as _);
    // SAFETY: the message refers to `byte` and `control`, which outlive the call.
    if unsafe { libc::sendmsg(one.as_raw_fd(), &raw const message, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    other.read_exact(&mut [0])
}

/// All inputs with one operand replaced by the other, at any position, in every width that holds
/// both, and in both byte orders.
fn replacements(input: &[u8], comparison: Comparison) -> Vec<Vec<u8>> {
    // Compilers sign-extend the operands of a `switch`.
    let mask = u64::MAX >> (64 - 8 * comparison.operand_size());
    let (first, second) = (comparison.operands().0 & mask, comparison.operands().1 & mask);
    let mut inputs = Vec::new();
    for (from, to) in [(first, second), (second, first)] {
        for width in [1, 2, 4, 8].into_iter().filter(|width| *width <= comparison.operand_size()) {
            let fits = |operand: u64| width == 8 || operand >> (8 * width) == 0;
            if from == to || !fits(from) || !fits(to) {
                continue;
            }
            let little = (&from.to_le_bytes()[..width], &to.to_le_bytes()[..width]);
            let big = (&from.to_be_bytes()[8 - width..], &to.to_be_bytes()[8 - width..]);
            for (from, to) in [little, big] {
                for place in (0..=input.len() - width).filter(|at| input[*at..].starts_with(from)) {
                    let mut input = input.to_vec();
                    input[place..place + width].copy_from_slice(to);
                    inputs.push(input);
                }
            }
        }
    }
    inputs
}

/// Runs an input and returns the records and the result of the call.
fn run(session: &mut Session<AnyMode>, input: &[u8]) -> (Vec<AnyRecord>, io::Result<()>) {
    let mut control = input.to_vec();
    session.reset();
    let result = send(&mut control);
    (session.trace().iter().collect(), result)
}

/// Prints a line with the input and its result.
fn tell(input: &[u8], result: &io::Result<()>) {
    input.iter().for_each(|byte| print!("{byte:02x}"));
    match result {
        Ok(()) => println!(" ok"),
        Err(error) => println!(" {error}"),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = Device::open()?.into_session(AnyMode::TracePc)?;
    // All bytes differ, so that an operand identifies its place in the input.
    let first: Vec<u8> = (0xa0..0xc0).collect();
    let (pcs, result) = run(&mut session, &first);
    tell(&first, &result);
    let mut seen: HashSet<_> = pcs.into_iter().map(AnyRecord::pc).collect();
    let mut tried = HashSet::from([first.clone()]);
    let mut queue = VecDeque::from([first]);

    while let Some(input) = queue.pop_front() {
        session = session.disable()?.into_owner().into_session(AnyMode::TraceCmp)?;
        let (comparisons, _) = run(&mut session, &input);
        session = session.disable()?.into_owner().into_session(AnyMode::TracePc)?;
        for record in comparisons {
            let AnyRecord::Comparison(comparison) = record else { continue };
            for input in replacements(&input, comparison) {
                if !tried.insert(input.clone()) {
                    continue;
                }
                let (pcs, result) = run(&mut session, &input);
                let before = seen.len();
                seen.extend(pcs.into_iter().map(AnyRecord::pc));
                if seen.len() == before {
                    continue;
                }
                tell(&input, &result);
                if result.is_ok() && input[8..16] == *GOAL.map(u32::to_ne_bytes).as_flattened() {
                    println!(
                        "found after {} inputs; this is process {}",
                        tried.len(),
                        process::id()
                    );
                    return Ok(());
                }
                queue.push_back(input);
            }
        }
    }
    Err(format!("not found with {} inputs", tried.len()).into())
}
