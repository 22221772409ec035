//! Values of sysctl(3).

use crate::errno::{Errno, Result};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::null;

/// Looks up a value by its name.
pub(crate) fn sysctl_name(name: &CStr) -> Vec<c_int> {
    let mut number = [0; 12];
    let mut length = number.len();
    // SAFETY: the name ends with a zero byte, and the call gets the length of the array.
    let returned =
        unsafe { libc::sysctlnametomib(name.as_ptr(), number.as_mut_ptr(), &mut length) };
    assert_eq!(returned, 0, "{name:?}: {}", Errno::last());
    number[..length].to_vec()
}

/// Reads the value, and sets it if `new` is given.
pub(crate) fn sysctl(name: &[c_int], new: Option<&[u8]>) -> Result<Vec<u8>> {
    let mut value = vec![0; 4096];
    let mut length = value.len();
    let (set, size) = new.map_or((null(), 0), |new| (new.as_ptr(), new.len()));
    // SAFETY: the call gets the lengths of all three. It writes to `value` and `length` only.
    let returned = unsafe {
        libc::sysctl(
            name.as_ptr(),
            name.len() as c_uint,
            value.as_mut_ptr().cast(),
            &mut length,
            set.cast::<c_void>(),
            size,
        )
    };
    Errno::check(returned)?;
    value.truncate(length);
    Ok(value)
}

/// The free memory of the machine, in bytes.
pub(crate) fn free_memory() -> u64 {
    let values = sysctl(&sysctl_name(c"vm.uvmexp2"), None).expect("counts of pages");
    let value = |index: usize| {
        let bytes = values[8 * index..8 * (index + 1)].try_into().expect("eight bytes");
        u64::from_ne_bytes(bytes)
    };
    // The size of a page and the number of free ones (`struct uvmexp_sysctl`).
    value(0) * value(4)
}

/// The number of interrupts of the clock since boot.
pub(crate) fn ticks() -> u32 {
    let ticks = sysctl(&sysctl_name(c"kern.hardclock_ticks"), None).expect("the number of ticks");
    u32::from_ne_bytes(ticks.try_into().expect("four bytes"))
}
