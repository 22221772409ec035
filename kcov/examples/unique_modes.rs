//! Prints a kernel trace of read(2). The first argument selects the mode: 0 program counters, 1
//! comparisons; and as proposed by Jiao Joey, each once: 2 program counters, 4 edges, 6 both, 8
//! comparisons.
use kcov::mode::{TraceCmp, TracePc};
use kcov::proposed::EdgeDevice;
use kcov::{BufferSize, Comparison, Device, Modes, Pc};
use std::{error::Error, fs::File, io::Read};

const NOT_THERE: &str = "this kernel does not have that mode";

/// The system call to trace.
fn target(file: &mut File) {
    let _ = file.read(&mut []);
}

fn print_pcs(pcs: impl IntoIterator<Item = Pc>) {
    pcs.into_iter().for_each(|pc| println!("{pc}"));
}

fn print_comparisons(comparisons: impl IntoIterator<Item = Comparison>) {
    for comparison in comparisons {
        let (first, second) = comparison.operands();
        println!(
            "ip: {} type: {:#x}, arg1: {first:#x}, arg2: {second:#x}, size: {}, {}",
            comparison.pc(),
            comparison.raw_type(),
            comparison.operand_size(),
            if comparison.is_const() { "const" } else { "non-const" },
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mode: u32 = std::env::args().nth(1).map_or(Ok(0), |mode| mode.parse())?;
    println!("The mode is: {mode}");
    let proposals = Modes::probe()?.proposals();
    let mut file = File::open("/dev/null")?;
    let mut device = Device::builder().size(BufferSize::words(64 << 10)).open()?;
    match mode {
        0 => {
            let session = device.enable(TracePc)?;
            target(&mut file);
            print_pcs(session.disable()?.trace().iter());
        }
        1 => {
            let session = device.enable(TraceCmp)?;
            target(&mut file);
            print_comparisons(session.disable()?.trace().iter());
        }
        2 => {
            let session = device.enable(proposals.uniq_pc().ok_or(NOT_THERE)?)?;
            target(&mut file);
            print_pcs(session.disable()?.trace().iter());
        }
        4 | 6 => {
            let edge = proposals.uniq_edge().ok_or(NOT_THERE)?;
            let mut device = EdgeDevice::new(device, edge)?;
            let session = if mode == 4 { device.enable()? } else { device.enable_with_pcs()? };
            target(&mut file);
            let (pcs, edges) = session.disable()?;
            print_pcs(pcs.iter());
            println!("======edge======");
            edges.iter().for_each(|edge| println!("{edge}"));
        }
        8 => {
            let session = device.enable(proposals.uniq_cmp().ok_or(NOT_THERE)?)?;
            target(&mut file);
            print_comparisons(session.disable()?.trace().iter());
        }
        _ => return Err("Unsupported mode!".into()),
    }
    Ok(())
}
