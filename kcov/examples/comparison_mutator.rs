//! Finds what the kernel wants to see in an input, by what it compares the input with: a control message
//! of sendmsg(2) that passes on credentials. The kernel compares its length, level and type, the length
//! again, and the process id, of 8, 4, 4, 8 and 4 bytes; nothing here knows where or with what.
use kcov::mode::AnyMode;
use kcov::{AnyRecord, Comparison, Device, Session};
use nix::libc;
use std::collections::HashSet;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The call, and what it came to.
fn send(control: &mut [u8]) -> io::Result<()> {
    let (one, mut other) = UnixStream::pair()?;
    let mut data = libc::iovec { iov_base: [0_u8].as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: all zeros are a message without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut data, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), control.len());
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = Device::open()?.into_session(AnyMode::TracePc)?;
    let mut seen = HashSet::new();
    // Bytes that differ, so that an operand is found where it came from.
    let mut queue: Vec<Vec<u8>> = vec![(0xa0..0xc0).collect()];
    let mut tried: HashSet<Vec<u8>> = queue.iter().cloned().collect();
    seen.extend(run(&mut session, &queue[0]).0.into_iter().map(AnyRecord::pc));

    let mut next = 0;
    while let Some(input) = queue.get(next).cloned() {
        next += 1;
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
                if seen.len() > before {
                    println!("{:02x?}", input);
                    println!("  {} new PCs, {result:?}", seen.len() - before);
                    queue.push(input);
                    if result.is_ok() { println!("found"); }
                }
            }
        }
    }
    println!("{} inputs tried", tried.len());
    Ok(())
}
