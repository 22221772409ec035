//! Memory protection keys of x86: what a thread may do with pages that bear a key stands in a register
//! of its own, PKRU, which it changes without a system call.

use super::Pages;
use crate::error::ErrorKind;
use libc::{PROT_READ, PROT_WRITE, c_long, syscall};
use std::arch::asm;
use std::io;

#[cfg(target_arch = "x86")]
use std::arch::x86::{__cpuid_count, __get_cpuid_max};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid_count, __get_cpuid_max};

/// Rights that a thread lacks (`include/uapi/asm-generic/mman-common.h`).
const PKEY_DISABLE_ACCESS: u32 = 1;
const PKEY_DISABLE_WRITE: u32 = 2;

/// A protection key of this process, given back when dropped. No page may bear it any more then: it
/// is the next one that the process is given.
#[derive(Debug)]
pub(crate) struct Key(u32);

impl Key {
    /// Takes a key. The calling thread may read what bears it, all others may not even that.
    pub(crate) fn new() -> Result<Key, i32> {
        let (flags, rights) = (0 as c_long, PKEY_DISABLE_WRITE as c_long);
        // SAFETY: the call takes no pointer, and no page bears a key that is not taken.
        let key = check(unsafe { syscall(libc::SYS_pkey_alloc, flags, rights) })?;
        // The kernel has 16.
        Ok(Key(key as u32))
    }

    /// What a refusal means where the errno alone does not tell: it is one for a machine without keys
    /// and for a process that has all of them.
    pub(crate) fn explain(errno: i32) -> Option<ErrorKind> {
        (errno == libc::ENOSPC && !is_enabled()).then_some(ErrorKind::NoProtectionKeys)
    }

    /// Lets pages bear the key. Threads that have the right may read and write them.
    ///
    /// # Safety
    ///
    /// The pages are a buffer of this crate, which threads read only if they have the right.
    pub(crate) unsafe fn cover(&self, pages: &Pages) -> Result<(), i32> {
        let (prot, key) = ((PROT_READ | PROT_WRITE) as c_long, self.0 as c_long);
        // SAFETY: the pages are a buffer of this crate, as the function demands; no byte of them changes.
        check(unsafe {
            syscall(libc::SYS_pkey_mprotect, pages.address.as_ptr(), pages.bytes, prot, key)
        })?;
        Ok(())
    }

    /// Lets the calling thread read what bears the key, and not write it.
    pub(crate) fn allow_reading(&self) {
        self.set_rights(PKEY_DISABLE_WRITE);
    }

    /// Lets the calling thread write what bears the key for as long as `store` runs.
    ///
    /// A signal handler that interrupts it has the rights of all handlers, which are none.
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
        // SAFETY: the key was taken by `new`, and nobody else gives it back. The result is ignored: a
        // key that a target has given back is gone, which is what is wanted.
        let _ = unsafe { syscall(libc::SYS_pkey_free, c_long::from(self.0 as u8)) };
    }
}

fn check(result: c_long) -> Result<c_long, i32> {
    if result >= 0 {
        return Ok(result);
    }
    Err(io::Error::last_os_error().raw_os_error().expect("an errno"))
}

/// Two bits for each key, which are the rights of pkey_alloc(2). There is a [`Key`] whenever it is
/// called, so the processor has the register and the kernel has enabled it.
fn read_pkru() -> u32 {
    let rights: u32;
    // SAFETY: reads a register that there is into EAX, with 0 in ECX as it has to be.
    unsafe { asm!("rdpkru", in("ecx") 0, out("eax") rights, out("edx") _, options(nostack)) };
    rights
}

/// As for [`read_pkru`]. The compiler keeps accesses to memory on their side of it, as it does for
/// any assembly that is not said to touch none; so does the processor.
fn write_pkru(rights: u32) {
    // SAFETY: there is such a register, and 0 is in ECX and EDX as it has to be. Only the rights to
    // what bears a `Key` change, and who has taken the key knows of that.
    unsafe { asm!("wrpkru", in("eax") rights, in("ecx") 0, in("edx") 0, options(nostack)) };
}

/// Whether the kernel has enabled keys on this processor: `OSPKE`, bit 4 of ECX of leaf 7.
#[allow(unused_unsafe, reason = "newer compilers have these as safe functions")]
fn is_enabled() -> bool {
    const LEAF: u32 = 7;
    // SAFETY: processors whose kernel has protection keys have the instruction.
    let (most, _) = unsafe { __get_cpuid_max(0) };
    // SAFETY: as above.
    most >= LEAF && unsafe { __cpuid_count(LEAF, 0) }.ecx & 1 << 4 != 0
}
