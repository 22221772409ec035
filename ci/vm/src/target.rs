//! `targets.toml`: the kernels and their declared properties.

mod like;
mod lock;

pub use lock::{FILE as LOCK, Pin, Pins, Wanted};

use crate::arch::Arch;
use crate::error::{Error, Phase, Result, one_line};
use crate::netbsd;
use crate::system::System;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// A kernel that can run programs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Target {
    /// Its name on the command line.
    pub name: String,
    /// The way to build and boot it.
    pub kind: Kind,
    /// The source package: a name, or the beginning of several (`linux-source-7` stands for the
    /// newest `linux-source-7.*`).
    #[serde(default)]
    pub package: String,
    /// The suite to search.
    #[serde(default)]
    pub suite: String,
    /// Configuration fragments in `configs/`; later ones win.
    #[serde(default)]
    pub config: Vec<PathBuf>,
    /// Patches in `patches/`, applied in order.
    #[serde(default)]
    pub patches: Vec<PathBuf>,
    /// More arguments for `make`: variables that override those of the kernel's makefiles.
    #[serde(default)]
    pub make: Vec<String>,
    /// The compiler, if not the machine's `gcc`: a program in `PATH`.
    #[serde(default)]
    pub compiler: String,
    /// The required beginning of the release string.
    #[serde(default)]
    pub release: String,
    /// The kernel's architecture.
    #[serde(default = "Arch::usual")]
    pub arch: &'static Arch,
    /// Words that tell the test program which features this kernel has. The runner does not
    /// interpret them.
    #[serde(default)]
    pub declares: Vec<String>,
    /// Modules, by their paths in the tree. They are built and put into `/lib/modules` of the
    /// suite's guests.
    #[serde(default)]
    pub modules: Vec<String>,
    /// The functions for the program's list of calls.
    #[serde(default)]
    pub calls: Option<Calls>,
    /// The suite's architecture, if it is not the kernel's.
    #[serde(default)]
    pub userland: Option<&'static Arch>,
    /// Additional words for the kernel's command line.
    #[serde(default)]
    pub cmdline: String,
    /// Memory, in MiB.
    pub memory: u32,
    /// Processors.
    #[serde(default = "one")]
    pub smp: u32,
    /// The time limit for booting, in seconds.
    pub boot_limit: u64,
    /// The time limit for the program, in seconds.
    pub program_limit: u64,
    /// Whether it is a default target.
    #[serde(default)]
    pub default: bool,
    /// The source package with its locked version.
    #[serde(skip)]
    pub wanted: Wanted,
}

/// The functions for the list of calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// A name, or a beginning with an asterisk.
    pub of: String,
    /// The word of `declares` to leave out if a user's kernel has no such list.
    pub word: String,
}

fn one() -> u32 {
    1
}

/// The way to build and boot a kernel.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// User-Mode Linux: a program of the host.
    Uml,
    /// A machine in QEMU.
    Qemu,
    /// NetBSD/amd64 in QEMU, with a kernel that the user gives.
    Netbsd,
}

/// How QEMU runs a guest.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Accel {
    /// The host's processor.
    Kvm,
    /// QEMU's emulation.
    Tcg,
    /// QEMU's emulation, where one instruction takes one nanosecond of the guest's time.
    Icount,
}

impl Kind {
    /// The name in `targets.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uml => "uml",
            Self::Qemu => "qemu",
            Self::Netbsd => "netbsd",
        }
    }

    /// The kernel's system.
    pub fn system(self) -> System {
        match self {
            Self::Uml | Self::Qemu => System::Linux,
            Self::Netbsd => System::NetBsd,
        }
    }
}

impl Target {
    fn lock(&mut self, pins: &Pins) {
        self.wanted = pins.wanted(&self.package, &self.suite);
    }

    /// Completes the paths of files. A later base has the files that an earlier one lacks.
    fn find(&mut self, bases: &[PathBuf]) -> std::result::Result<(), String> {
        for (key, dir, files) in
            [("config", "configs", &mut self.config), ("patches", "patches", &mut self.patches)]
        {
            for file in files {
                let name = Path::new(dir).join(&file);
                let found = bases.iter().map(|base| base.join(&name)).find(|path| path.is_file());
                *file =
                    found.ok_or_else(|| format!("key `{key}`: there is no {}", name.display()))?;
            }
        }
        Ok(())
    }

    /// Validates the keys beyond their types.
    fn validate(&self) -> std::result::Result<(), String> {
        if !is_word(&self.name) {
            return Err("key `name`: must be letters, digits, `-`, `.` and `_`".into());
        }
        let built = [
            ("package", self.package.is_empty()),
            ("suite", self.suite.is_empty()),
            ("config", self.config.is_empty()),
        ];
        let release = ("release", self.release.is_empty());
        let missing = match self.kind {
            Kind::Netbsd => {
                let more = [("patches", self.patches.is_empty()), ("make", self.make.is_empty())];
                if let Some((key, _)) = built.iter().chain(&more).find(|(_, empty)| !empty) {
                    return Err(format!("key `{key}`: not allowed for a netbsd target"));
                }
                release.1.then_some(release)
            }
            Kind::Uml | Kind::Qemu => built.into_iter().chain([release]).find(|(_, empty)| *empty),
        };
        if let Some((key, _)) = missing {
            return Err(format!("key `{key}`: is missing or empty"));
        }
        let words = [
            ("package", &self.package),
            ("suite", &self.suite),
            ("compiler", &self.compiler),
            ("release", &self.release),
        ];
        let words = words.into_iter().filter(|(_, text)| !text.is_empty());
        let declares = self.declares.iter().map(|word| ("declares", word));
        if let Some((key, text)) = words.chain(declares).find(|(_, text)| !is_word(text)) {
            return Err(format!("key `{key}`: `{text}` is not a word"));
        }
        if let Some(calls) = &self.calls {
            if !self.declares.contains(&calls.word) {
                return Err(format!("key `calls`: `{}` is not declared", calls.word));
            }
        }
        let numbers = [
            ("memory", u64::from(self.memory)),
            ("smp", u64::from(self.smp)),
            ("boot-limit", self.boot_limit),
            ("program-limit", self.program_limit),
        ];
        match numbers.iter().find(|(_, number)| *number == 0) {
            Some((key, _)) => Err(format!("key `{key}`: must not be 0")),
            None => Ok(()),
        }
    }

    /// The machine's name in uname(2).
    pub fn machine(&self) -> &'static str {
        match self.kind {
            Kind::Uml | Kind::Qemu => self.arch.machine,
            Kind::Netbsd => netbsd::MACHINE,
        }
    }

    /// rustc's triple for the suite.
    pub fn triple(&self) -> &'static str {
        match self.kind {
            Kind::Uml | Kind::Qemu => self.userland.unwrap_or(self.arch).triple,
            Kind::Netbsd => netbsd::TRIPLE,
        }
    }

    /// The time limit for booting.
    pub fn boot_limit(&self) -> Duration {
        Duration::from_secs(self.boot_limit)
    }

    /// The time limit for the program.
    pub fn program_limit(&self) -> Duration {
        Duration::from_secs(self.program_limit)
    }
}

/// All targets, in the order of the files.
#[derive(Clone, Debug)]
pub struct Targets {
    /// The targets.
    pub all: Vec<Target>,
    /// The directory of `targets.lock`.
    pub base: PathBuf,
    /// The default program of `test`, if there is one: a package with a binary of this name. It must understand
    /// `list --system WORD`, `plan --release R --declare WORDS` and `run --format ktap --declare
    /// WORDS [ID…]`.
    pub suite: String,
    /// The program that `trace` runs in the guest, and then on the host to read the trace. It must
    /// understand `--raw FILE -- COMMAND`, `--read FILE` and that command's options.
    pub tracer: String,
}

impl Targets {
    /// Reads and validates the file.
    pub fn load(file: &Path) -> Result<Self> {
        let fail = |message: String| {
            Error::unavailable(Phase::Targets, format!("{}: {message}", file.display()))
        };
        let text = fs::read_to_string(file).map_err(|e| fail(e.to_string()))?;
        let base = file.parent().unwrap_or(Path::new(""));
        let mut targets = Self::parse(&text, base).map_err(fail)?;
        let pins = Pins::load(&targets.base)?;
        targets.all.iter_mut().for_each(|target| target.lock(&pins));
        Ok(targets)
    }

    /// Parses and validates the file's text; `base` is its directory. The key `extends` names
    /// another file, whose targets come first.
    pub fn parse(text: &str, base: &Path) -> std::result::Result<Self, String> {
        let mut table = table(text)?;
        // Its own fragments and patches win.
        let mut bases = vec![base.to_path_buf()];
        let mut entries = Vec::new();
        if let Some(other) = table.remove("extends") {
            let file = base.join(other.as_str().ok_or("key `extends`: must name a file")?);
            let fail = |why| format!("key `extends`: {}: {why}", file.display());
            let text = fs::read_to_string(&file).map_err(|e| fail(e.to_string()))?;
            let mut other = self::table(&text).map_err(fail)?;
            entries = list(&mut other).map_err(fail)?;
            other.extend(table);
            table = other;
            bases.push(file.parent().unwrap_or(base).to_path_buf());
        }
        entries.extend(list(&mut table)?);
        let mut word = |key| match table.remove(key) {
            None => Ok(String::new()),
            Some(toml::Value::String(word)) if is_word(&word) => Ok(word),
            _ => Err(format!("key `{key}`: must name a program")),
        };
        let (suite, tracer) = (word("suite")?, word("tracer")?);
        if let Some(key) = table.keys().next() {
            return Err(format!("unknown key `{key}` outside any target"));
        }
        like::resolve(&mut entries)?;
        let mut all: Vec<Target> = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let name = match entry.get("name").and_then(toml::Value::as_str) {
                Some(name) => format!("target `{name}`"),
                None => format!("target number {}", index + 1),
            };
            let mut target: Target =
                entry.try_into().map_err(|e| format!("{name}: {}", one_line(&e.to_string())))?;
            target.find(&bases).map_err(|e| format!("{name}: {e}"))?;
            target.validate().map_err(|e| format!("{name}: {e}"))?;
            target.lock(&Pins::default());
            if all.iter().any(|other| other.name == target.name) {
                return Err(format!("{name}: key `name`: another target has it"));
            }
            all.push(target);
        }
        if !all.iter().any(|target| target.default) {
            return Err("key `default`: no target sets it to true".into());
        }
        Ok(Self { all, base: bases.remove(bases.len() - 1), suite, tracer })
    }

    /// Adds the options of a file, or of a fragment in `configs/`, to all kernels.
    pub fn configure(&mut self, given: &Path) -> std::result::Result<(), String> {
        let own = self.base.join("configs").join(format!("{}.config", given.display()));
        let file = if given.components().count() == 1 && own.is_file() { &own } else { given };
        let read = || Ok((fs::canonicalize(file)?, fs::read_to_string(file)?));
        let (path, text) = read().map_err(|e: io::Error| format!("{}: {e}", given.display()))?;
        // Kconfig would only warn.
        let odd = |line: &&str| {
            let is_setting = line.starts_with("CONFIG_") && line.contains('=');
            !is_setting && !line.starts_with('#') && !line.is_empty()
        };
        if let Some(line) = text.lines().map(str::trim).find(odd) {
            return Err(format!("{}: `{line}` is not a line CONFIG_NAME=VALUE", given.display()));
        }
        let path = path.to_str().ok_or_else(|| format!("{}: not UTF-8", given.display()))?;
        // An absolute path stays outside of `configs/`.
        self.all.iter_mut().for_each(|target| target.config.push(path.into()));
        Ok(())
    }

    /// Adds words for the user's kernels: `own`, and those of netbsd targets.
    pub fn declare(&mut self, words: &[String], own: bool) -> Result<()> {
        if let Some(word) = words.iter().find(|word| !is_word(word)) {
            return Err(Error::usage(format!("--declare {word}: not a word")));
        }
        for target in self.all.iter_mut().filter(|target| own || target.kind == Kind::Netbsd) {
            let new = words.iter().filter(|word| !target.declares.contains(word)).cloned();
            target.declares.extend(new.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Sets the memory, in MiB, and the number of processors of all guests. A uniprocessor kernel
    /// keeps its one.
    pub fn resize(&mut self, memory: Option<u32>, smp: Option<u32>) {
        for target in &mut self.all {
            target.memory = memory.unwrap_or(target.memory);
            if target.kind != Kind::Uml || target.smp > 1 {
                target.smp = smp.unwrap_or(target.smp);
            }
        }
    }

    /// Returns all source packages that targets use.
    pub fn wanted(&self) -> Vec<Wanted> {
        let mut all: Vec<Wanted> = Vec::new();
        for Target { wanted, .. } in &self.all {
            if !wanted.pattern.is_empty() && !all.contains(wanted) {
                all.push(wanted.clone());
            }
        }
        all
    }

    /// Returns the default targets for a host: those of its architecture, if there are any.
    pub(crate) fn defaults(&self, host: &Arch) -> Vec<&Target> {
        let default = || self.all.iter().filter(|target| target.default);
        let own: Vec<_> = default().filter(|it| it.arch.machine == host.machine).collect();
        if own.is_empty() { default().collect() } else { own }
    }

    /// Returns the named targets, each once, or the host's default ones.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Target>> {
        if names.is_empty() {
            return Ok(self.defaults(Arch::host()));
        }
        let mut chosen: Vec<&Target> = Vec::new();
        for name in names {
            let target = self.named(name)?;
            if !chosen.iter().any(|other| other.name == target.name) {
                chosen.push(target);
            }
        }
        Ok(chosen)
    }

    /// Returns the target with this name.
    pub fn named(&self, name: &str) -> Result<&Target> {
        self.all.iter().find(|target| target.name == name).ok_or_else(|| {
            let known: Vec<_> = self.all.iter().map(|target| target.name.as_str()).collect();
            Error::usage(format!("no target `{name}`; there are: {}", known.join(", ")))
        })
    }
}

fn table(text: &str) -> std::result::Result<toml::Table, String> {
    text.parse().map_err(|e: toml::de::Error| one_line(&e.to_string()))
}

/// Takes the targets of a file.
fn list(table: &mut toml::Table) -> std::result::Result<Vec<toml::Value>, String> {
    match table.remove("target") {
        Some(toml::Value::Array(entries)) if !entries.is_empty() => Ok(entries),
        _ => Err("no [[target]]".into()),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

#[cfg(test)]
mod tests;
