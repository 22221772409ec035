//! Finds names and lines for program counters.

use crate::coverage::Coverage;
use crate::error::Error;
use crate::kernel::{Image, Kernel};
use kcov::Arch;
use kcov::Pc;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The architecture of a record. User-Mode Linux is a program and runs in the lower half.
pub fn arch(pc: Pc) -> Arch {
    if pc.address() >> 63 == 0 { Arch::Um64 } else { Arch::X86_64 }
}

/// The source of names.
pub enum Symbols {
    /// The kernel image, with link addresses.
    Image(Box<Image>),
    /// A list such as `/proc/kallsyms`, with runtime addresses.
    Listed(Vec<(u64, String)>),
}

/// The place of a program counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function in the symbol table, or the module.
    pub symbol: String,
    /// The offset from its beginning, in bytes.
    pub offset: u64,
    /// The functions inlined there, innermost first. The last one is the function itself. Empty
    /// without debug information.
    pub frames: Vec<Frame>,
}

/// A function and a line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// The file and the line.
    pub line: Option<(PathBuf, u32)>,
}

impl Symbols {
    /// No symbols.
    pub fn none() -> Symbols {
        Symbols::Listed(Vec::new())
    }

    /// Reads a kernel's image (`vmlinux`), which must be the recorded one.
    pub fn of_image(file: &Path, recorded: &Kernel) -> Result<Symbols, Error> {
        let image = Image::read(file)?;
        let found = &image.kernel;
        match found.is(recorded) {
            Some(true) => Ok(Symbols::Image(Box::new(image))),
            Some(false) => Err(Error::about(
                file.display(),
                format_args!(
                    "is {found}, but the recording is of {recorded}: use that kernel's `vmlinux`"
                ),
            )),
            None => Err(Error::about(
                file.display(),
                format_args!("nothing shows that it is the recorded kernel, {recorded}"),
            )),
        }
    }

    /// Reads the running kernel's list.
    pub fn listed() -> Result<Symbols, Error> {
        const FILE: &str = "/proc/kallsyms";
        let text = fs::read_to_string(FILE).map_err(Error::of(FILE))?;
        let mut all: Vec<_> = text.lines().filter_map(code).collect();
        all.sort();
        Ok(Symbols::Listed(all))
    }

    /// Finds the place of a record.
    pub fn look_up(&self, pc: Pc, coverage: &Coverage) -> Place {
        // Modules are identified by their addresses in the running kernel.
        let slide = coverage.slide.unwrap_or(0);
        let arch = arch(pc);
        let running = pc.run_time(slide).call_site(arch).address();
        let module = coverage.modules.find(running);
        match self {
            Symbols::Image(image) if module.is_none() => {
                in_image(image, pc.link_time(slide).call_site(arch).address())
            }
            // The list includes modules' symbols.
            Symbols::Listed(all) if coverage.slide.is_some() => {
                listed(all, running, module.map(|(module, _)| module.name.as_str()))
            }
            _ => module.map_or_else(Place::default, |(module, offset)| Place {
                symbol: format!("[{}]", module.name),
                offset,
                frames: Vec::new(),
            }),
        }
    }
}

fn in_image(image: &Image, site: u64) -> Place {
    let mut frames = Vec::new();
    if !image.has(site) {
        return Place::default();
    }
    if let Ok(mut found) = image.loader.find_frames(site) {
        while let Ok(Some(frame)) = found.next() {
            let function = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let line = frame.location.and_then(|at| Some((plain(at.file?), at.line?)));
            let function = function.map_or_else(|| "??".into(), String::from);
            frames.push(Frame { function, line });
        }
    }
    let symbol = image.loader.find_symbol_info(site);
    let (symbol, offset) =
        symbol.map_or((String::new(), 0), |found| (found.name().into(), site - found.address()));
    Place { symbol, offset, frames }
}

/// Finds the symbol before an address. Nothing bounds the last symbol of the list, of the kernel's
/// code and of a module, except for the module's size.
fn listed(all: &[(u64, String)], site: u64, module: Option<&str>) -> Place {
    const ENDS: [&str; 2] = ["_etext", "_einittext"];
    let next = all.partition_point(|(address, _)| *address <= site);
    let Some((address, symbol)) = next.checked_sub(1).map(|last| &all[last]) else {
        return Place::default();
    };
    let of = symbol.split_once(" [").map(|(_, module)| module.trim_end_matches(']'));
    if of != module || (of.is_none() && next == all.len()) || ENDS.contains(&symbol.as_str()) {
        return Place::default();
    }
    Place { symbol: symbol.clone(), offset: site - address, frames: Vec::new() }
}

/// Simplifies a path's `..` parts, because kernels are often built beside their source.
fn plain(path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Parses a line of `/proc/kallsyms`: address, kind, name, and optionally the module.
fn code(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    let kind = words.next()?;
    let name = words.next()?;
    let name = words.next().map_or_else(|| name.to_owned(), |module| format!("{name} {module}"));
    matches!(kind, "t" | "T" | "w" | "W").then_some((address, name))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol.as_str() {
            "" => f.write_str("??"),
            symbol => write!(f, "{symbol}+{:#x}", self.offset),
        }
    }
}

#[cfg(test)]
mod tests;
