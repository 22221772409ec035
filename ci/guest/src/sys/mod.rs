//! The system calls of init and the fixture that differ between systems. Both
//! files export the same names.

#[cfg(not(target_os = "netbsd"))]
mod linux;
#[cfg(target_os = "netbsd")]
mod netbsd;

#[cfg(not(target_os = "netbsd"))]
pub use linux::{
    begin, furnish, go_down, mount, open_channel, raise_loopback, set, silence_interfaces,
};
#[cfg(target_os = "netbsd")]
pub use netbsd::{
    begin, furnish, go_down, mount, open_channel, raise_loopback, set, silence_interfaces,
};

use std::thread::sleep;
use std::time::Duration;

/// Waits until the host ends the guest.
fn wait_for_the_host() -> ! {
    loop {
        sleep(Duration::from_secs(3600));
    }
}
