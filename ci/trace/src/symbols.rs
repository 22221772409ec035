//! Finds names and lines for program counters.

use crate::coverage::Coverage;
use crate::error::Error;
use crate::kernel::{Image, Kernel};
use crate::modules::Module;
use addr2line::Loader;
use kcov::{Arch, Pc};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;

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
    pub symbol: Arc<str>,
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
    pub function: Arc<str>,
    /// The file and the line.
    pub line: Option<(Arc<Path>, u32)>,
}

impl Symbols {
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

    /// Finds the places of records. For many, which should be sorted, two threads work, and forget
    /// debug information that they have passed.
    pub fn look_up(&self, pcs: &[Pc], coverage: &Coverage) -> Vec<Place> {
        const MANY: usize = 10_000;
        const PART: usize = 400_000;
        let image = match self {
            Symbols::Image(image) => image,
            Symbols::Listed(all) => {
                return pcs.iter().map(|pc| in_list(all, *pc, coverage)).collect();
            }
        };
        let find = |pcs: &[Pc]| -> Vec<Place> {
            let (mut names, mut places) = (Names::default(), Vec::with_capacity(pcs.len()));
            for part in pcs.chunks(PART) {
                let loader = image.loader();
                let place = |pc: &Pc| in_image(&loader, &image.code, *pc, coverage, &mut names);
                places.extend(part.iter().map(place));
            }
            places
        };
        if pcs.len() < MANY {
            return find(pcs);
        }
        let (first, second) = pcs.split_at(pcs.len() / 2);
        thread::scope(|scope| {
            let second = scope.spawn(|| find(second));
            let mut places = find(first);
            places.extend(second.join().expect("no panic"));
            places
        })
    }
}

/// The address of the call in the running kernel.
fn running(pc: Pc, coverage: &Coverage) -> u64 {
    pc.run_time(coverage.slide.unwrap_or(0)).call_site(arch(pc)).address()
}

fn module_alone(found: Option<(&Module, u64)>) -> Place {
    found.map_or_else(Place::default, |(module, offset)| Place {
        symbol: format!("[{}]", module.name).into(),
        offset,
        frames: Vec::new(),
    })
}

fn in_image(
    loader: &Loader,
    code: &[Range<u64>],
    pc: Pc,
    coverage: &Coverage,
    names: &mut Names,
) -> Place {
    // Modules are identified by their addresses in the running kernel.
    let module = coverage.modules.find(running(pc, coverage));
    if module.is_some() {
        return module_alone(module);
    }
    let site = pc.link_time(coverage.slide.unwrap_or(0)).call_site(arch(pc)).address();
    if !code.iter().any(|range| range.contains(&site)) {
        return Place::default();
    }
    let mut frames = Vec::new();
    if let Ok(mut found) = loader.find_frames(site) {
        while let Ok(Some(frame)) = found.next() {
            let function = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let function = names.name(function.as_deref().unwrap_or("??"));
            let line = frame.location.and_then(|at| Some((names.file(at.file?), at.line?)));
            frames.push(Frame { function, line });
        }
        frames.shrink_to_fit();
    }
    let symbol = loader.find_symbol_info(site);
    let (symbol, offset) = symbol
        .map_or((names.name(""), 0), |found| (names.name(found.name()), site - found.address()));
    Place { symbol, offset, frames }
}

/// Each name and each path once, because millions of places share them.
#[derive(Default)]
struct Names {
    names: HashSet<Arc<str>>,
    files: HashMap<Box<str>, Arc<Path>>,
}

impl Names {
    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let new: Arc<str> = name.into();
        self.names.insert(new.clone());
        new
    }

    fn file(&mut self, path: &str) -> Arc<Path> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        let new: Arc<Path> = plain(path).into();
        self.files.insert(path.into(), new.clone());
        new
    }
}

/// The list includes modules' symbols.
fn in_list(all: &[(u64, String)], pc: Pc, coverage: &Coverage) -> Place {
    let module = coverage.modules.find(running(pc, coverage));
    match coverage.slide {
        Some(_) => {
            let name = module.map(|(module, _)| module.name.as_str());
            listed(all, running(pc, coverage), name)
        }
        None => module_alone(module),
    }
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
    Place { symbol: symbol.as_str().into(), offset: site - address, frames: Vec::new() }
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
        match &*self.symbol {
            "" => f.write_str("??"),
            symbol => write!(f, "{symbol}+{:#x}", self.offset),
        }
    }
}

#[cfg(test)]
mod tests;
