//! Prints the comparisons that the kernel makes for one access(2). From these a fuzzer learns which
//! values the kernel looks for.
use kcov::{Device, mode::TraceCmp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::open()?;
    let session = device.enable(TraceCmp)?;
    let exists = std::path::Path::new("/magic").exists();
    let recorded = session.disable()?;
    let trace = recorded.trace();
    for comparison in trace.iter() {
        let (first, second) = comparison.operands();
        let constant = if comparison.is_const() { "const" } else { "" };
        let bits = 8 * comparison.operand_size();
        println!("{} {first:#x} {second:#x} {bits} bits {constant}", comparison.pc());
    }
    if trace.is_truncated() {
        println!("(truncated at {} comparisons)", trace.capacity());
    }
    println!("/magic exists: {exists}");
    Ok(())
}
