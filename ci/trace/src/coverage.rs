//! The collected data, and the file that holds it: JSON behind a line with the format's version.

use crate::kernel::Kernel;
use crate::modules::Modules;
use kcov::Pc;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;

/// The first line, with the format's version.
const HEAD: &str = "kcov-trace 3";

/// The coverage of one command, or of several.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Coverage {
    /// The kernel.
    pub kernel: Kernel,
    /// The kernel's offset from its link address in bytes, if known.
    pub slide: Option<u64>,
    /// The loaded modules.
    pub modules: Modules,
    /// What the command did that was not collected, and why.
    pub missing: Vec<String>,
    /// In the order in which they ended.
    pub threads: Vec<Thread>,
}

/// The coverage of one thread.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// The process id, or 0 for the kernel's workers.
    pub process: i32,
    /// The thread id.
    pub number: i32,
    /// Its last name.
    pub name: String,
    /// The number of records.
    pub records: u64,
    /// Whether an unknown number of records is missing, because the buffer was full.
    pub truncated: bool,
    /// Program counters in the order of their first occurrence, with their counts.
    #[serde(serialize_with = "numbers", deserialize_with = "counts")]
    pub counts: Vec<(Pc, u64)>,
}

fn numbers<S: Serializer>(counts: &[(Pc, u64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(counts.iter().map(|(pc, count)| (pc.address(), count)))
}

fn counts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(Pc, u64)>, D::Error> {
    let numbers = Vec::<(u64, u64)>::deserialize(from)?;
    Ok(numbers.into_iter().map(|(address, count)| (Pc::new(address), count)).collect())
}

impl Thread {
    /// Adds records in their order.
    pub fn count(&mut self, records: impl Iterator<Item = Pc>) {
        self.add(records.map(|pc| (pc, 1)));
    }

    /// Adds records of which each occurred several times.
    fn add(&mut self, records: impl Iterator<Item = (Pc, u64)>) {
        let mut known: HashMap<Pc, usize> =
            self.counts.iter().enumerate().map(|(index, (pc, _))| (*pc, index)).collect();
        for (pc, times) in records {
            self.records = self.records.saturating_add(times);
            let index = *known.entry(pc).or_insert_with(|| {
                self.counts.push((pc, 0));
                self.counts.len() - 1
            });
            self.counts[index].1 = self.counts[index].1.saturating_add(times);
        }
    }
}

impl Coverage {
    /// All program counters with their counts, sorted by address.
    pub fn total(&self) -> Vec<(Pc, u64)> {
        self.sum(|_| true)
    }

    /// The same of some threads.
    pub fn sum(&self, of: impl Fn(&Thread) -> bool) -> Vec<(Pc, u64)> {
        let mut sum = Thread::default();
        let threads = self.threads.iter().filter(|thread| of(thread));
        sum.add(threads.flat_map(|thread| thread.counts.iter().copied()));
        sum.counts.sort_unstable();
        sum.counts
    }

    /// Adds the coverage of another command on the same kernel.
    pub fn merged(mut self, other: Coverage) -> Result<Coverage, String> {
        if self.kernel.is(&other.kernel) != Some(true) {
            let (first, this) = (&self.kernel, &other.kernel);
            return Err(format!("is of {this}, but the first recording is of {first}"));
        }
        let has_modules = !self.modules.is_empty() || !other.modules.is_empty();
        let is_of_boot = self.slide == other.slide && self.modules.agree(&other.modules);
        if has_modules && !is_of_boot {
            return Err(
                "is of another boot, where modules have other addresses; record all in one \
                        boot, or without modules"
                    .into(),
            );
        }
        self.threads.extend(other.threads);
        self.slide = self.slide.or(other.slide);
        self.modules = self.modules.iter().chain(other.modules.iter()).cloned().collect();
        self.missing.extend(other.missing);
        self.missing.dedup();
        Ok(self)
    }

    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Coverage, String> {
        let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
        match head {
            HEAD => serde_json::from_str(rest).map_err(|why| format!("is damaged: {why}")),
            _ if head.starts_with("kcov-trace ") => Err(format!(
                "has the format `{head}`, and this program reads `{HEAD}`: record it again"
            )),
            _ => Err(format!("is not a recording: its first line is not `{HEAD}`")),
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        writeln!(f, "{HEAD}\n{json}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::Module;

    fn coverage() -> Coverage {
        let mut thread =
            Thread { process: 12, number: 13, name: "a b".into(), ..Thread::default() };
        thread.count([3, 1, 3, 2].into_iter().map(Pc::new));
        thread.count([3].into_iter().map(Pc::new));
        let module = Module { name: "nfs".into(), start: 0x1000, size: 4096 };
        let other = Thread { truncated: true, counts: vec![(Pc::new(1), 1)], ..thread.clone() };
        Coverage {
            kernel: kernel("1f"),
            slide: Some(0x10),
            modules: [module].into_iter().collect(),
            missing: vec!["all of it".into()],
            threads: vec![thread, other],
        }
    }

    fn kernel(build: &str) -> Kernel {
        let banner = Some("Linux version 7.3 odd".into());
        Kernel { release: "7.3".into(), build: Some(build.into()), banner }
    }

    #[test]
    fn what_was_collected_survives_the_file() {
        let coverage = coverage();
        assert_eq!(Coverage::parse(&coverage.to_string()), Ok(coverage.clone()));
        let unknown = Coverage { slide: None, kernel: Kernel::default(), ..coverage };
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
    fn recordings_of_one_kernel_are_added_up() {
        let first = coverage();
        // Modules have another address in another boot.
        let module = |start| Module { name: "nfs".into(), start, size: 4096 };
        let moved = Coverage { modules: [module(0x9000)].into_iter().collect(), ..coverage() };
        assert!(first.clone().merged(moved).is_err_and(|why| why.contains("another boot")));
        let new = Module { name: "new".into(), ..module(0x2000) };
        let more = Coverage { modules: [module(0x1000), new].into_iter().collect(), ..coverage() };
        let sum = first.clone().merged(more).expect("the same boot");
        let total: Vec<_> = sum.total().iter().map(|(pc, n)| (pc.address(), *n)).collect();
        assert_eq!(total, [(1, 4), (2, 2), (3, 6)]);
        assert_eq!((sum.threads.len(), sum.modules.iter().count()), (4, 2));
        assert_eq!(sum.missing, ["all of it"]);
        let alone = |slide| Coverage { slide, modules: Modules::default(), ..coverage() };
        assert!(alone(Some(1)).merged(alone(Some(2))).is_ok());
        let other = Coverage { kernel: kernel("2e"), ..coverage() };
        let why = first.merged(other).expect_err("refused");
        assert_eq!(
            why,
            "is of Linux 7.3 (build id 2e), but the first recording is of Linux 7.3 (build id 1f)"
        );
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Coverage::parse("").is_err_and(|why| why.contains("is not a recording")));
        let old = Coverage::parse("kcov-trace 1\nkernel 7.3\n");
        assert!(old.is_err_and(|why| why.contains("`kcov-trace 1`") && why.contains("record it")));
        let text = coverage().to_string();
        let cut = Coverage::parse(&text[..text.len() - 2]);
        assert!(cut.is_err_and(|why| why.contains("is damaged")));
    }
}
