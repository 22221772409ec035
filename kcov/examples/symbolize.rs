//! Prints the functions and lines that one read(2) goes through, from the kernel's image.
use addr2line::Loader;
use kcov::{Arch, Device, mode::TracePc};
use std::error::Error;
use std::{fs::File, io::Read};

fn main() -> Result<(), Box<dyn Error>> {
    let image = std::env::args_os().nth(1).ok_or("usage: symbolize VMLINUX")?;
    let symbols = Loader::new(image)?;
    let arch = Arch::running().ok_or("the length of calls is unknown")?;
    let mut file = File::open("/dev/zero")?;
    let mut device = Device::open()?;
    let session = device.enable(TracePc)?;
    let result = file.read(&mut [0; 16]);
    let recorded = session.disable()?;
    result?;
    for pc in recorded.trace().iter() {
        // The instruction before the recorded address belongs to the line that was executed. On
        // Linux it is an address of the image, whatever the KASLR offset.
        let site = pc.call_site(arch).address();
        println!("{pc} {}", places(&symbols, site)?.join(", inlined in "));
    }
    Ok(())
}

/// Returns the functions at an address, with their lines. The first is inlined in the second, and
/// so on. Without debug information there are no lines and no inlined functions.
fn places(symbols: &Loader, site: u64) -> Result<Vec<String>, Box<dyn Error>> {
    let mut places = Vec::new();
    let mut frames = symbols.find_frames(site)?;
    while let Some(frame) = frames.next()? {
        let Some(function) = &frame.function else { continue };
        let line = frame.location.and_then(|at| Some(format!(" {}:{}", at.file?, at.line?)));
        places.push(function.demangle()?.into_owned() + &line.unwrap_or_default());
    }
    if places.is_empty() {
        places.push(symbols.find_symbol(site).unwrap_or("??").to_owned());
    }
    Ok(places)
}
