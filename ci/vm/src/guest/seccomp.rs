//! Probes whether the host installs seccomp filters. User-Mode Linux confines its processes with
//! them.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long the host may take to install a filter.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns why User-Mode Linux must do without filters, if the host neither installs nor refuses
/// one.
///
/// This happens if the host's kernel can no longer free BPF programs. Guests would hang at boot.
pub fn refusal() -> Option<&'static str> {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    REFUSAL.get_or_init(|| probe().err()).as_deref()
}

/// Installs a filter in a child that ends at once. However it ends: the kernel's own test says whether
/// there are filters.
fn probe() -> Result<(), String> {
    let (sender, ended) = channel();
    thread::spawn(move || {
        let mut child = Command::new("true");
        let before_exec = move || {
            // A child that hangs must not keep a pipe of this process open.
            // SAFETY: nothing in the child uses a descriptor.
            unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
            install();
            Ok(())
        };
        // SAFETY: the closure makes only system calls. It neither allocates nor takes a lock, so it
        // may run between fork and exec.
        let status = unsafe { child.pre_exec(before_exec) }.status();
        sender.send(status.is_ok())
    });
    let late = |_| format!("this host does not install a seccomp filter within {LIMIT:?}");
    ended.recv_timeout(LIMIT).map(drop).map_err(late)
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
