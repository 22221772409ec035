//! Memory protection keys. The library supports those of x86 only, and libc lacks the system calls on
//! some other architectures.

use crate::errno::{Errno, Result};
use libc::{c_long, c_void, syscall};

cfg_if::cfg_if! {
    if #[cfg(any(target_arch = "x86", target_arch = "x86_64"))] {
        const ALLOC: c_long = libc::SYS_pkey_alloc;
        const MPROTECT: c_long = libc::SYS_pkey_mprotect;
    } else {
        // No system call has this number, so these fail with `ENOSYS`. Arm ends programs that use
        // numbers beyond 16 bits.
        const ALLOC: c_long = 0xffff;
        const MPROTECT: c_long = 0xffff;
    }
}

/// Allocates a key that this process never frees. Fails with `ENOSYS` except on x86.
pub fn take_key() -> Result<()> {
    let none: c_long = 0;
    // SAFETY: the call takes no pointer, and no page gets the key.
    Errno::check(unsafe { syscall(ALLOC, none, none) }).map(drop)
}

/// Makes `bytes` bytes of whole pages readable and writable, and gives them the key of all other
/// memory. Fails with `ENOSYS` except on x86.
///
/// # Safety
///
/// The caller must ensure that nothing relies on the pages' protection.
pub unsafe fn give_usual_key(address: *mut c_void, bytes: usize) -> Result<()> {
    let (prot, key) = (c_long::from(libc::PROT_READ | libc::PROT_WRITE), 0 as c_long);
    // SAFETY: the call changes no bytes, and the caller ensures that the protection may change.
    Errno::check(unsafe { syscall(MPROTECT, address, bytes, prot, key) }).map(drop)
}
