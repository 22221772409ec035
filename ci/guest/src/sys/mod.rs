//! What init and the fixture ask of the kernel, where systems differ. Both
//! files offer the same names.

#[cfg(not(target_os = "netbsd"))]
mod linux;
#[cfg(target_os = "netbsd")]
mod netbsd;

#[cfg(not(target_os = "netbsd"))]
pub use linux::{JOB, begin, forget_job, go_down, make_read_only, mount, open_channel, set};
#[cfg(target_os = "netbsd")]
pub use netbsd::{JOB, begin, forget_job, go_down, make_read_only, mount, open_channel, set};

use std::thread::sleep;
use std::time::Duration;

/// Lets the host end the guest.
fn wait_for_the_host() -> ! {
    loop {
        sleep(Duration::from_secs(3600));
    }
}
