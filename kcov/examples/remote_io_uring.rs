//! Prints the program counters of a kernel thread that works for this process: one that polls an
//! io_uring for submissions. The ring inherits the handle, so it is made after enabling. Linux 7.2
//! and later.
#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use io_uring::{IoUring, opcode::Nop};
    use kcov::remote::linux::{CommonHandle, Remote};
    use kcov::{Device, mode::TracePc};
    use std::time::Duration;

    let mut device = Device::open()?;
    let remote = Remote::new().common(CommonHandle::of_process());
    let session = device.enable_remote(TracePc, &remote)?;
    let mut ring: IoUring = IoUring::builder().setup_sqpoll(1).build(1)?;
    let entry = Nop::new().build();
    // SAFETY: the operation does nothing, so it refers to nothing that must stay alive.
    unsafe { ring.submission().push(&entry)? };
    ring.submit_and_wait(1)?;
    // A section's records come when it ends, which is after the operation is done.
    let trace = session.wait(Duration::from_secs(5));
    trace.iter().for_each(|pc| println!("{pc}"));
    if trace.is_empty() {
        return Err("nothing came: is the kernel older than Linux 7.2?".into());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("io_uring is Linux's");
    std::process::exit(1);
}
