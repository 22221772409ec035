//! Makes a stopped thread execute system calls for the debugger.

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The `syscall` instruction in memory.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A new thread, stopped after the system call that created it.
pub struct Newborn {
    thread: Pid,
    registers: libc::user_regs_struct,
    /// Signals that arrived in the meantime.
    pub signals: Vec<Signal>,
}

impl Newborn {
    /// Examines a thread. Returns `None` if `syscall` did not create it, as in 32-bit programs.
    pub fn new(thread: Pid) -> Result<Option<Newborn>, Errno> {
        let registers = ptrace::getregs(thread)?;
        let before = registers.rip.wrapping_sub(2);
        let word = ptrace::read(thread, before as ptrace::AddressType)?;
        let known = word.to_le_bytes()[..2] == SYSCALL;
        Ok(known.then_some(Newborn { thread, registers, signals: Vec::new() }))
    }

    /// Makes the thread execute a system call.
    ///
    /// This writes no memory: it reuses the instruction that created the thread.
    pub fn call(&mut self, number: i64, arguments: [u64; 3]) -> Result<u64, Errno> {
        let mut registers = self.registers;
        registers.rip -= SYSCALL.len() as u64;
        registers.rax = number as u64;
        // Prevents the kernel from restarting a call.
        registers.orig_rax = u64::MAX;
        [registers.rdi, registers.rsi, registers.rdx] = arguments;
        ptrace::setregs(self.thread, registers)?;
        self.reach_syscall()?;
        self.reach_syscall()?;
        let result = ptrace::getregs(self.thread)?.rax as i64;
        match result {
            -4095..0 => Err(Errno::from_raw(-result as i32)),
            _ => Ok(result as u64),
        }
    }

    /// Restores the thread's state.
    pub fn restore(&self) -> Result<(), Errno> {
        ptrace::setregs(self.thread, self.registers)
    }

    /// Runs the thread to the beginning or end of a system call.
    fn reach_syscall(&mut self) -> Result<(), Errno> {
        loop {
            ptrace::syscall(self.thread, None)?;
            let status = loop {
                match waitpid(self.thread, Some(WaitPidFlag::__WALL)) {
                    Err(Errno::EINTR) => {}
                    result => break result?,
                }
            };
            match status {
                WaitStatus::PtraceSyscall(_) => return Ok(()),
                WaitStatus::Stopped(_, signal) => self.signals.push(signal),
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Err(Errno::ESRCH),
                _ => {}
            }
        }
    }
}
