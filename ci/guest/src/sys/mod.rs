//! The system calls of init and the fixture that differ between systems. Both
//! files export the same names.

#[cfg_attr(not(target_os = "netbsd"), path = "linux.rs")]
#[cfg_attr(target_os = "netbsd", path = "netbsd.rs")]
mod system;

pub use system::{begin, furnish, go_down, mount, open_channel, raise_loopback};

use std::thread::sleep;
use std::time::Duration;

/// Waits until the host ends the guest.
fn wait_for_the_host() -> ! {
    loop {
        sleep(Duration::from_secs(3600));
    }
}
