//! Prints the program counters of a kernel thread that works for this process, each once: one that
//! polls an io_uring for submissions. The ring inherits the handle, so it is made after enabling.
//! Linux 7.2 and later.
use kcov::remote::linux::{CommonHandle, Remote};
use kcov::{Device, mode::TracePc};
use std::collections::BTreeSet;
use std::time::Duration;

mod uring;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::open()?;
    let remote = Remote::new().common(CommonHandle::of_process());
    let session = device.enable_remote(TracePc, &remote)?;
    uring::nothing_by_a_kernel_thread()?;
    // A section's records come when it ends, which is after the operation is done.
    let trace = session.wait(Duration::from_secs(5));
    // The thread polls until it has been idle for a while, so most of them come often.
    let pcs: BTreeSet<_> = trace.iter().collect();
    pcs.iter().for_each(|pc| println!("{pc}"));
    if trace.is_empty() {
        return Err("nothing came: is the kernel older than Linux 7.2?".into());
    }
    Ok(())
}
