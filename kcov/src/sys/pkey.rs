//! Memory protection keys of x86. A per-thread register, PKRU, holds the thread's rights to pages
//! with a key; the thread changes it without a system call.

use super::Pages;
use crate::error::ErrorKind;
use libc::{PROT_READ, PROT_WRITE, c_long, syscall};
use std::arch::asm;
use std::io;

#[cfg(target_arch = "x86")]
use std::arch::x86::{__cpuid_count, __get_cpuid_max};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid_count, __get_cpuid_max};

/// Rights withheld from a thread (`include/uapi/asm-generic/mman-common.h`).
const PKEY_DISABLE_ACCESS: u32 = 1;
const PKEY_DISABLE_WRITE: u32 = 2;

/// A protection key of this process, freed when dropped. No page may still have it then, because
/// the process may be given the same key again.
#[derive(Debug)]
pub(crate) struct Key(u32);

impl Key {
    /// Allocates a key. The calling thread may read pages with it; other threads may not.
    pub(crate) fn new() -> Result<Key, i32> {
        let (flags, rights) = (0 as c_long, PKEY_DISABLE_WRITE as c_long);
        // SAFETY: the call takes no pointer, and no page has a key that was not allocated.
        let key = check(unsafe { syscall(libc::SYS_pkey_alloc, flags, rights) })?;
        // The kernel has 16 keys.
        Ok(Key(key as u32))
    }

    /// Tells the cause of a failed allocation if the errno is ambiguous: it is the same for a
    /// machine without keys and for a process that has used them all.
    pub(crate) fn explain(errno: i32) -> Option<ErrorKind> {
        (errno == libc::ENOSPC && !is_enabled()).then_some(ErrorKind::NoProtectionKeys)
    }

    /// Assigns the key to pages. Threads with the right may read and write them.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the pages are a buffer of this crate, and that only threads with
    /// the right read it.
    pub(crate) unsafe fn cover(&self, pages: &Pages) -> Result<(), i32> {
        let (prot, key) = ((PROT_READ | PROT_WRITE) as c_long, self.0 as c_long);
        // SAFETY: the caller passes pages of a buffer of this crate; the call changes none of their
        // bytes.
        check(unsafe {
            syscall(libc::SYS_pkey_mprotect, pages.address.as_ptr(), pages.bytes, prot, key)
        })?;
        Ok(())
    }

    /// Lets the calling thread read, but not write, pages with the key.
    pub(crate) fn allow_reading(&self) {
        self.set_rights(PKEY_DISABLE_WRITE);
    }

    /// Lets the calling thread write pages with the key while `store` runs.
    ///
    /// A signal handler that interrupts it has the default rights of handlers, which are none.
    #[cold]
    pub(crate) fn write(&self, store: impl FnOnce()) {
        self.set_rights(0);
        store();
        self.set_rights(PKEY_DISABLE_WRITE);
    }

    fn set_rights(&self, rights: u32) {
        let shift = 2 * self.0;
        let all = PKEY_DISABLE_ACCESS | PKEY_DISABLE_WRITE;
        let before = read_pkru();
        let after = before & !(all << shift) | rights << shift;
        if after != before {
            write_pkru(after);
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the key and only this frees it. A failure is ignored: then a
        // target has already freed the key.
        let _ = unsafe { syscall(libc::SYS_pkey_free, c_long::from(self.0 as u8)) };
    }
}

fn check(result: c_long) -> Result<c_long, i32> {
    if result >= 0 {
        return Ok(result);
    }
    Err(io::Error::last_os_error().raw_os_error().expect("an errno"))
}

/// Reads two bits per key, the rights of pkey_alloc(2). Call it only while a [`Key`] exists: then
/// the processor has the register and the kernel has enabled it.
fn read_pkru() -> u32 {
    let rights: u32;
    // SAFETY: the register exists, see above. RDPKRU requires 0 in ECX and clears EDX.
    unsafe { asm!("rdpkru", in("ecx") 0, out("eax") rights, out("edx") _, options(nostack)) };
    rights
}

/// Same precondition as [`read_pkru`]. Neither the compiler nor the processor moves memory accesses
/// across it; for the compiler, because the assembly is not declared `nomem`.
fn write_pkru(rights: u32) {
    // SAFETY: the register exists, and ECX and EDX are 0 as WRPKRU requires. Only the rights to
    // pages with a `Key` change, and the owner of the key asked for that.
    unsafe { asm!("wrpkru", in("eax") rights, in("ecx") 0, in("edx") 0, options(nostack)) };
}

/// Whether the kernel has enabled keys on this processor: `OSPKE`, bit 4 of ECX of leaf 7.
#[allow(unused_unsafe, reason = "newer compilers have these as safe functions")]
fn is_enabled() -> bool {
    const LEAF: u32 = 7;
    // SAFETY: a processor whose kernel has protection keys has CPUID.
    let (most, _) = unsafe { __get_cpuid_max(0) };
    // SAFETY: likewise; leaf 7 exists.
    most >= LEAF && unsafe { __cpuid_count(LEAF, 0) }.ecx & 1 << 4 != 0
}
