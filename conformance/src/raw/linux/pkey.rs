//! Memory protection keys. The library supports those of x86 only; libc does not have the system
//! calls on all other architectures.

use crate::errno::Result;
use libc::c_void;

cfg_if::cfg_if! {
    if #[cfg(any(target_arch = "x86", target_arch = "x86_64"))] {
        use crate::errno::Errno;
        use libc::{SYS_pkey_alloc, SYS_pkey_mprotect, c_long, syscall};

        /// Allocates a key that this process never frees.
        pub fn take_key() -> Result<()> {
            let none: c_long = 0;
            // SAFETY: the call takes no pointer, and no page gets the key.
            Errno::check(unsafe { syscall(SYS_pkey_alloc, none, none) }).map(drop)
        }

        /// Makes pages readable and writable, and gives them the key of all other memory.
        ///
        /// # Safety
        ///
        /// As for mprotect(2): the caller must own the pages.
        pub unsafe fn give_usual_key(address: *mut c_void, bytes: usize) -> Result<()> {
            let (prot, key) = (c_long::from(libc::PROT_READ | libc::PROT_WRITE), 0 as c_long);
            // SAFETY: the caller owns the pages.
            Errno::check(unsafe { syscall(SYS_pkey_mprotect, address, bytes, prot, key) }).map(drop)
        }
    } else {
        /// Returns `ENOSYS`.
        pub fn take_key() -> Result<()> {
            Err(crate::errno::Errno(libc::ENOSYS))
        }

        /// Returns `ENOSYS`.
        ///
        /// # Safety
        ///
        /// None.
        pub unsafe fn give_usual_key(_: *mut c_void, _: usize) -> Result<()> {
            Err(crate::errno::Errno(libc::ENOSYS))
        }
    }
}
