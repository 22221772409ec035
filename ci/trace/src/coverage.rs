//! The collected data and its text format.
//!
//! ```text
//! kcov-trace 1
//! kernel 7.3.4-example
//! slide 0x1d200000
//! module nfs 0xffffffffc0a00000 282624
//! thread 12 13 4711 whole ls
//! 0xffffffff81000010 17
//! ```
//!
//! A thread's line has its process id, its thread id, the number of records, whether they are
//! complete, and its name. The following lines are the recorded program counters in the order of
//! their first occurrence, each with its count. The name comes last, so it may contain spaces.

use crate::modules::{Module, Modules};
use kcov::Pc;
use std::collections::HashMap;
use std::fmt;

/// The first line, with the format's version.
const HEAD: &str = "kcov-trace 1";

/// The coverage of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's offset from its link address in bytes, if known.
    pub slide: Option<u64>,
    /// The loaded modules.
    pub modules: Modules,
    /// In the order in which they ended.
    pub threads: Vec<Thread>,
}

/// The coverage of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The process id.
    pub process: i32,
    /// The thread id.
    pub number: i32,
    /// Its last name.
    pub name: String,
    /// The number of records.
    pub records: u64,
    /// Whether the buffer was full, so that an unknown number of records is missing.
    pub truncated: bool,
    /// Program counters in the order of their first occurrence, with their counts.
    pub counts: Vec<(Pc, u64)>,
}

impl Thread {
    /// Adds records in their order.
    pub fn count(&mut self, records: impl Iterator<Item = Pc>) {
        let mut known: HashMap<Pc, usize> =
            self.counts.iter().enumerate().map(|(index, (pc, _))| (*pc, index)).collect();
        for pc in records {
            self.records += 1;
            let index = *known.entry(pc).or_insert_with(|| {
                self.counts.push((pc, 0));
                self.counts.len() - 1
            });
            self.counts[index].1 += 1;
        }
    }
}

impl Coverage {
    /// All program counters with their counts, sorted by address.
    pub fn total(&self) -> Vec<(Pc, u64)> {
        let mut sum: HashMap<Pc, u64> = HashMap::new();
        for (pc, count) in self.threads.iter().flat_map(|thread| &thread.counts) {
            let entry = sum.entry(*pc).or_default();
            *entry = entry.saturating_add(*count);
        }
        let mut all: Vec<_> = sum.into_iter().collect();
        all.sort_unstable();
        all
    }

    /// Parses the text. The error names the bad line.
    pub fn parse(text: &str) -> Result<Coverage, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(format!("is not a file of kcov-trace: its first line is not `{HEAD}`"));
        }
        let mut coverage = Coverage::default();
        let mut modules = Vec::new();
        for (index, line) in lines.enumerate() {
            coverage
                .line(line, &mut modules)
                .ok_or_else(|| format!("line {}: cannot read `{line}`", index + 2))?;
        }
        coverage.modules = modules.into_iter().collect();
        Ok(coverage)
    }

    fn line(&mut self, line: &str, modules: &mut Vec<Module>) -> Option<()> {
        let (key, rest) = line.split_once(' ')?;
        match key {
            "kernel" => self.kernel = rest.to_owned(),
            "slide" => self.slide = Some(address(rest)?),
            "module" => {
                let (name, rest) = rest.split_once(' ')?;
                let (start, size) = rest.split_once(' ')?;
                let (start, size) = (address(start)?, size.parse().ok()?);
                modules.push(Module { name: name.to_owned(), start, size });
            }
            "thread" => {
                let mut words = rest.splitn(5, ' ');
                self.threads.push(Thread {
                    process: words.next()?.parse().ok()?,
                    number: words.next()?.parse().ok()?,
                    records: words.next()?.parse().ok()?,
                    truncated: match words.next()? {
                        "whole" => false,
                        "truncated" => true,
                        _ => return None,
                    },
                    name: words.next()?.to_owned(),
                    counts: Vec::new(),
                });
            }
            pc => {
                let pc = Pc::new(address(pc)?);
                self.threads.last_mut()?.counts.push((pc, rest.parse().ok()?));
            }
        }
        Some(())
    }
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}\nkernel {}", self.kernel)?;
        if let Some(slide) = self.slide {
            writeln!(f, "slide {slide:#x}")?;
        }
        for Module { name, start, size } in self.modules.iter() {
            writeln!(f, "module {name} {start:#x} {size}")?;
        }
        for thread in &self.threads {
            let Thread { process, number, records, name, .. } = thread;
            let whole = if thread.truncated { "truncated" } else { "whole" };
            writeln!(f, "thread {process} {number} {records} {whole} {name}")?;
            for (pc, count) in &thread.counts {
                writeln!(f, "{pc} {count}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage() -> Coverage {
        let mut thread =
            Thread { process: 12, number: 13, name: "a b".into(), ..Thread::default() };
        thread.count([3, 1, 3, 2].into_iter().map(Pc::new));
        thread.count([3].into_iter().map(Pc::new));
        let module = Module { name: "nfs".into(), start: 0x1000, size: 4096 };
        let other = Thread { truncated: true, counts: vec![(Pc::new(1), 1)], ..thread.clone() };
        Coverage {
            kernel: "7.3 odd".into(),
            slide: Some(0x10),
            modules: [module].into_iter().collect(),
            threads: vec![thread, other],
        }
    }

    #[test]
    fn what_was_collected_survives_the_file() {
        let coverage = coverage();
        assert_eq!(Coverage::parse(&coverage.to_string()), Ok(coverage.clone()));
        let unknown = Coverage { slide: None, ..coverage };
        assert_eq!(Coverage::parse(&unknown.to_string()), Ok(unknown));
    }

    #[test]
    fn records_are_counted_in_the_order_of_their_first() {
        let coverage = coverage();
        let counts: Vec<_> =
            coverage.threads[0].counts.iter().map(|(pc, count)| (pc.address(), *count)).collect();
        assert_eq!(counts, [(3, 3), (1, 1), (2, 1)]);
        assert_eq!(coverage.threads[0].records, 5);
        let total: Vec<_> = coverage.total().iter().map(|(pc, n)| (pc.address(), *n)).collect();
        assert_eq!(total, [(1, 2), (2, 1), (3, 3)]);
    }

    #[test]
    fn wrong_lines_are_named() {
        assert!(Coverage::parse("").is_err_and(|why| why.contains("not a file of kcov-trace")));
        for line in ["0x10 1", "thread 1 1 1 half x", "slide 12", "module a b c", "what", "0xg 1"] {
            let why = Coverage::parse(&format!("{HEAD}\n{line}\n")).expect_err("refused");
            assert_eq!(why, format!("line 2: cannot read `{line}`"));
        }
    }
}
