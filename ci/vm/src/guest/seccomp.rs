//! Probes whether the host installs seccomp filters. User-Mode Linux confines its processes with
//! them.

use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the host may take to install a filter.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns why User-Mode Linux must do without filters, if the host neither installs nor refuses
/// one.
///
/// This happens if the host's kernel can no longer free BPF programs. Guests would hang at boot.
pub fn refusal() -> Option<&'static str> {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    REFUSAL.get_or_init(|| probe(LIMIT, install).err()).as_deref()
}

/// Runs `install` in a child that ends at once.
fn probe(limit: Duration, install: fn()) -> Result<(), String> {
    // SAFETY: the child makes only system calls, as a child of a process with several threads must.
    let child = match unsafe { libc::fork() } {
        0 => {
            // A child that hangs must not keep a pipe of this process open.
            // SAFETY: nothing in the child uses a descriptor.
            unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
            install();
            // SAFETY: the call has no preconditions.
            unsafe { libc::_exit(0) }
        }
        child => Pid::from_raw(child).filter(|_| child > 0),
    };
    let child = child.ok_or_else(|| format!("fork: {}", io::Error::last_os_error()))?;
    let start = Instant::now();
    loop {
        match waitpid(Some(child), WaitOptions::NOHANG) {
            Ok(None) | Err(rustix::io::Errno::INTR) if start.elapsed() < limit => {
                sleep(Duration::from_millis(1));
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {
                return Err(format!(
                    "this host does not install a seccomp filter within {limit:?}"
                ));
            }
            // However it ended: the kernel's own test says whether there are filters.
            Ok(Some(_)) | Err(_) => return Ok(()),
        }
    }
}

/// Installs a filter that allows everything.
fn install() {
    let code = (libc::BPF_RET | libc::BPF_K) as u16;
    let mut allow = libc::sock_filter { code, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
    // SAFETY: the call takes no pointer.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its instruction live until the call has returned.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_that_hangs_is_refused() {
        assert_eq!(probe(Duration::from_secs(60), || ()), Ok(()));
        let limit = Duration::from_millis(20);
        let hangs = || {
            // SAFETY: the call has no preconditions.
            unsafe { libc::sleep(2) };
        };
        let why = probe(limit, hangs).expect_err("it takes longer");
        assert!(why.ends_with("within 20ms"), "{why}");
    }
}
