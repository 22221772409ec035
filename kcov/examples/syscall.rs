//! Prints the program counters that one read(2) goes through in the kernel.
use kcov::{Device, mode::TracePc};
use std::{fs::File, io::Read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = File::open("/dev/zero")?;
    let mut device = Device::open()?;
    let session = device.enable(TracePc)?;
    let result = file.read(&mut [0; 16]);
    let recorded = session.disable()?;
    result?;
    recorded.trace().iter().for_each(|pc| println!("{pc}"));
    Ok(())
}
