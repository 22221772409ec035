//! The directory of a fuzzer on the host. Files appear whole or not at all, so it survives any end of
//! the runner.

use super::report::Report;
use crate::cache::{PARTIAL, keep};
use kcov_vm_guest::fuzz;
use object::Object as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The corpus and the crashes.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// A saved death.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The directory of its group.
    pub directory: PathBuf,
    /// Whether it is the first of its group.
    pub is_new: bool,
}

impl Store {
    /// Opens or makes the directory.
    pub fn open(root: &Path) -> io::Result<Store> {
        let store = Store { root: root.to_owned() };
        fs::create_dir_all(store.corpus())?;
        fs::create_dir_all(store.crashes())?;
        // A user's seed may have any name; inputs are found by theirs.
        for path in store.files()? {
            fs::rename(&path, store.corpus().join(name(&fs::read(&path)?)))?;
        }
        Ok(store)
    }

    /// The directory of the corpus: a file for each input.
    pub fn corpus(&self) -> PathBuf {
        self.root.join("corpus")
    }

    /// The directory of the crashes: a directory for each group.
    pub fn crashes(&self) -> PathBuf {
        self.root.join("crashes")
    }

    /// Adds an input to the corpus, unless it has killed a guest. Returns whether it is new.
    pub fn add(&self, input: &[u8]) -> io::Result<bool> {
        let name = name(input);
        let path = self.corpus().join(&name);
        let is_new = !path.exists() && !self.is_deadly(&name)?;
        if is_new {
            keep(&path, input)?;
        }
        Ok(is_new)
    }

    /// Removes an input from the corpus.
    pub fn remove(&self, input: &[u8]) -> io::Result<()> {
        match fs::remove_file(self.corpus().join(name(input))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn is_deadly(&self, name: &str) -> io::Result<bool> {
        for group in fs::read_dir(self.crashes())? {
            if group?.path().join(INPUTS).join(name).exists() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The inputs of the corpus, in the order of their names.
    pub fn inputs(&self) -> io::Result<Vec<Vec<u8>>> {
        self.files()?.iter().map(fs::read).collect()
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(self.corpus())? {
            let path = entry?.path();
            let is_whole = !path.as_os_str().as_encoded_bytes().ends_with(PARTIAL.as_bytes());
            if is_whole && path.is_file() {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Saves a death: its input beside the others of the group, and for the first of the group the
    /// report and the console, too. The input leaves the corpus, which each guest starts with.
    pub fn save(
        &self,
        input: Option<&[u8]>,
        report: &Report,
        console: &[String],
    ) -> io::Result<Saved> {
        let directory = self.crashes().join(&report.group);
        let inputs = directory.join(INPUTS);
        fs::create_dir_all(&inputs)?;
        if let Some(input) = input {
            keep(&inputs.join(name(input)), input)?;
            self.remove(input)?;
        }
        let first = directory.join("report");
        let is_new = !first.exists();
        if is_new {
            keep(&directory.join("console"), console.join("\n") + "\n")?;
            if let Some(input) = input {
                keep(&directory.join("input"), input)?;
            }
            keep(&first, format!("{}\n\n{}", report.title, report.text))?;
        }
        Ok(Saved { directory, is_new })
    }
}

/// The directory of a group's inputs.
const INPUTS: &str = "inputs";

/// The first line of a file of kcov-trace.
const HEAD: &str = "kcov-trace 3\n";

/// A kernel in a file of kcov-trace: the target and the image's build id.
pub fn kernel(target: &str, vmlinux: &Path) -> Value {
    let bytes = fs::read(vmlinux).unwrap_or_default();
    let parsed = object::File::parse(&*bytes).ok();
    let build = parsed.and_then(|file| {
        let id = file.build_id().ok()??;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    });
    json!({ "release": target, "build": build })
}

impl Store {
    /// The file that lists the program counters reached, in kcov-trace's format.
    pub fn coverage(&self) -> PathBuf {
        self.root.join("coverage")
    }

    /// The program counters of earlier runs on this kernel.
    pub fn reached(&self, kernel: &Value) -> io::Result<BTreeSet<u64>> {
        let text = match fs::read_to_string(self.coverage()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            text => text?,
        };
        let file = text.strip_prefix(HEAD).and_then(|json| serde_json::from_str(json).ok());
        let file: Value = file.filter(|file: &Value| file["kernel"] == *kernel).unwrap_or_default();
        let counts = file["threads"][0]["counts"].as_array().into_iter().flatten();
        Ok(counts.filter_map(|count| count[0].as_u64()).collect())
    }

    /// Saves the program counters reached on a kernel.
    pub fn save_reached(&self, kernel: &Value, pcs: &BTreeSet<u64>) -> io::Result<()> {
        let counts: Vec<_> = pcs.iter().map(|pc| (pc, 1)).collect();
        let corpus = json!({ "process": 1, "number": 1, "name": "corpus", "records": pcs.len(),
                             "truncated": false, "counts": counts });
        let file = json!({ "kernel": kernel, "threads": [corpus] });
        keep(&self.coverage(), format!("{HEAD}{file}\n"))
    }
}

/// The name of an input's file.
fn name(input: &[u8]) -> String {
    format!("{:016x}", fuzz::name(input))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report { group: "warning-in-f".into(), title: "WARNING".into(), text: "text".into() }
    }

    #[test]
    fn a_seed_may_have_any_name() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        fs::write(store.corpus().join("seed.txt"), b"seed").unwrap();
        let store = Store::open(directory.path()).unwrap();
        assert_eq!(store.inputs().unwrap(), [b"seed"]);
        store.remove(b"seed").unwrap();
        assert!(store.inputs().unwrap().is_empty());
    }

    #[test]
    fn the_corpus_holds_each_input_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        assert!(store.add(b"one").unwrap() && store.add(b"two").unwrap());
        assert!(!store.add(b"one").unwrap());
        // A file of a runner that was killed.
        fs::write(store.corpus().join("x.partial"), b"half").unwrap();
        let again = Store::open(directory.path()).unwrap();
        let mut inputs = again.inputs().unwrap();
        inputs.sort();
        assert_eq!(inputs, [b"one", b"two"]);
        // A deadly input leaves the corpus for ever.
        store.save(Some(b"one"), &report(), &[]).unwrap();
        assert!(!store.add(b"one").unwrap());
        assert_eq!(store.inputs().unwrap(), [b"two"]);
    }

    #[test]
    fn coverage_survives() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let kernel = json!({ "release": "linux-uml", "build": "12ab" });
        assert!(store.reached(&kernel).unwrap().is_empty());
        let pcs = [0x6012_f015, u64::MAX].into();
        store.save_reached(&kernel, &pcs).unwrap();
        assert_eq!(store.reached(&kernel).unwrap(), pcs);
        // Another target, and another build of this one.
        for other in [("linux", Some("12ab")), ("linux-uml", None), ("linux-uml", Some("12"))] {
            let other = json!({ "release": other.0, "build": other.1 });
            assert!(store.reached(&other).unwrap().is_empty(), "{other}");
        }
    }

    #[test]
    fn each_input_of_a_group_is_saved_and_the_first_report() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let console = ["WARNING".to_string()];
        let first = store.save(Some(b"a"), &report(), &console).unwrap();
        let other = Report { text: "other".into(), ..report() };
        let second = store.save(Some(b"b"), &other, &console).unwrap();
        let third = store.save(None, &other, &console).unwrap();
        assert!(first.is_new && !second.is_new && !third.is_new);
        let read = |name: &str| fs::read_to_string(first.directory.join(name)).unwrap();
        assert_eq!((read("input"), read("report")), ("a".into(), "WARNING\n\ntext".into()));
        assert_eq!(fs::read_dir(first.directory.join("inputs")).unwrap().count(), 2);
    }
}
