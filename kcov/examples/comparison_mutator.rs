//! Finds what the kernel wants to see in an input, by what it compares the input with: a control message
//! of sendmsg(2) that passes on credentials. The kernel compares its length, level and type, the length
//! again, and the process id, of 8, 4, 4, 8 and 4 bytes. Nothing here knows where, or with what.
use kcov::mode::AnyMode;
use kcov::{AnyRecord, Comparison, Device, Session};
use nix::libc;
use std::collections::{HashSet, VecDeque};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process;

/// Level and type of the message: `SOL_SOCKET` and `SCM_CREDENTIALS` of Linux. Only by these does the
/// example know that it is done.
const GOAL: [u32; 2] = [1, 2];

/// The call, and what it came to.
fn send(control: &mut [u8]) -> io::Result<()> {
    let (one, mut other) = UnixStream::pair()?;
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: all zeros are a message without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut data, 1);
    (message.msg_control, message.msg_controllen) =
        (control.as_mut_ptr().cast(), control.len() as _);
    // SAFETY: the message refers to a byte and to the control data, which outlive the call.
    if unsafe { libc::sendmsg(one.as_raw_fd(), &raw const message, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    other.read_exact(&mut [0])
}

/// All inputs with one operand replaced by the other one, wherever it stands: at every width in which
/// both fit, in both byte orders.
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

/// Runs an input; the records, and what the call came to.
fn run(session: &mut Session<AnyMode>, input: &[u8]) -> (Vec<AnyRecord>, io::Result<()>) {
    let mut control = input.to_vec();
    session.reset();
    let result = send(&mut control);
    (session.trace().iter().collect(), result)
}

/// A line: the input and what came of it.
fn tell(input: &[u8], result: &io::Result<()>) {
    input.iter().for_each(|byte| print!("{byte:02x}"));
    match result {
        Ok(()) => println!(" ok"),
        Err(error) => println!(" {error}"),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = Device::open()?.into_session(AnyMode::TracePc)?;
    // Bytes that differ, so that an operand is found where it came from.
    let first: Vec<u8> = (0xa0..0xc0).collect();
    let (pcs, result) = run(&mut session, &first);
    tell(&first, &result);
    let mut seen: HashSet<_> = pcs.into_iter().map(AnyRecord::pc).collect();
    let mut tried = HashSet::from([first.clone()]);
    let mut queue = VecDeque::from([first]);

    while let Some(input) = queue.pop_front() {
        session = session.disable()?.into_session(AnyMode::TraceCmp)?;
        let (comparisons, _) = run(&mut session, &input);
        session = session.disable()?.into_session(AnyMode::TracePc)?;
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
