//! Prints the call tree of one openat(2) in the kernel, like ftrace's function_graph. Needs a
//! kernel with the proposed extended records.
use kcov::proposed::{CallTree, Event, Step};
use kcov::{Device, Modes, Pc};
use kcov_signal::KernelText;
use std::{error::Error, fs};

/// The kernel's functions by link-time address.
struct Symbols(Vec<(u64, String)>);

impl Symbols {
    fn read() -> Result<Symbols, Box<dyn Error>> {
        let mut symbols = Vec::new();
        for line in fs::read_to_string("/proc/kallsyms")?.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            symbols.push((u64::from_str_radix(address, 16)?, name.to_owned()));
        }
        symbols.sort();
        // Linux subtracts the KASLR offset from recorded addresses, so do the same here.
        let moved = KernelText::read()?.kaslr_offset();
        symbols.iter_mut().for_each(|symbol| symbol.0 = symbol.0.wrapping_sub(moved));
        Ok(Symbols(symbols))
    }

    fn name(&self, pc: Pc) -> &str {
        let end = self.0.partition_point(|symbol| symbol.0 < pc.address());
        end.checked_sub(1).map_or("?", |last| &self.0[last].1)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mode = Modes::probe()?.proposals().trace_pc_ext();
    let mode = mode.ok_or("this kernel has no extended records")?;
    let symbols = Symbols::read()?;

    let mut device = Device::open()?;
    let session = device.enable(mode)?;
    let file = fs::File::open("/proc/version");
    let recorded = session.disable()?;
    let trace = recorded.trace();
    file?;

    // Skip the blocks within functions.
    let calls = |step: &Step| !matches!(step.event, Event::Within(_));
    let mut steps = CallTree::new(trace.iter()).filter(calls).peekable();
    let mut open = Vec::new();
    println!("# FUNCTION CALLS");
    println!("# |   |   |   |");
    while let Some(step) = steps.next() {
        let indent = "  ".repeat(step.depth);
        match step.event {
            Event::Enter(pc) => {
                let name = symbols.name(pc);
                let leaf = matches!(steps.peek(), Some(Step { event: Event::Leave(_), .. }));
                if leaf {
                    steps.next();
                    println!("{indent}{name}();");
                } else {
                    println!("{indent}{name}() {{");
                    open.push((step.depth, name));
                }
            }
            Event::Leave(pc) => match open.pop() {
                Some(_) => println!("{indent}}}"),
                None => println!("{indent}}} /* {} */", symbols.name(pc)),
            },
            _ => {}
        }
    }
    for (depth, name) in open.into_iter().rev() {
        println!("{}/* still in {name} */", "  ".repeat(depth + 1));
    }
    if trace.is_truncated() {
        println!("(truncated at {} records)", trace.capacity());
    }
    Ok(())
}
