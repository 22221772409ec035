//! Rebuilds a kernel again and again with one altered file.
//!
//! The tree and its build output stay in the cache under the kernel's key, so each build compiles
//! one file and links.

use super::build::checked_config;
use super::key;
use super::make::Make;
use super::{Compiler, PROOF, Place};
use crate::arch::Arch;
use crate::cache::{self, Cache, Lock};
use crate::error::{Error, OrUnavailable as _, Phase, Result, Unavailable};
use crate::host::{self, Need};
use crate::run::command;
use crate::source::{self, Source};
use crate::target::Target;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A tree with one altered file.
pub trait AlteredTree {
    /// The text of the unaltered file.
    fn original(&self) -> &str;
    /// Builds the kernel with this text in place of the file. The next build replaces it. The inner
    /// error is what the compiler or the linker says of the text.
    fn build(&self, text: &str) -> Result<std::result::Result<PathBuf, String>>;
    /// The files that belong beside the kernel: its symbols and modules.
    fn beside(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// A built tree and its altered file.
#[derive(Debug)]
pub struct Bench {
    tree: PathBuf,
    output: PathBuf,
    log: PathBuf,
    mark: String,
    arch: &'static Arch,
    /// The kernel image in the output directory.
    image: &'static str,
    arguments: Vec<String>,
    modules: Vec<String>,
    file: String,
    original: String,
    /// The argument for `make` that selects the compiler, if it is not the default.
    chosen: Option<String>,
    /// The command that compiles the file.
    compiler: String,
    _lock: Lock,
}

impl Bench {
    /// Opens the tree of the target's kernel, building it first if necessary. `file` is the path of
    /// the altered file in the tree.
    pub fn open(target: &Target, source: &Source, cache: &Cache, file: &str) -> Result<Self> {
        host::require(Need::Build(target.arch))?;
        let chosen = Compiler::of(target)?;
        let place = Place::of(target, source, &chosen, cache)?;
        let ingredients = &place.ingredients;
        let lock = cache.lock(Phase::Build, &format!("bench-{}", place.name))?;
        let directory = cache.at("benches").join(&place.name);
        let pristine = source.tree(cache)?;
        let proof = directory.join(PROOF);
        if fs::read_to_string(&proof).ok().as_deref() != Some(ingredients.text()) {
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir_all(directory.join("output"))
                .or_unavailable(Phase::Build, directory.display())?;
            source::patched(&pristine, &ingredients.patches, &directory.join("tree"))?;
        }
        // Keep the patched file as the original: so far only the patches have altered it.
        let kept = directory.join("original");
        let copy = kept.join(file.replace('/', "%"));
        if !copy.is_file() {
            let path = directory.join("tree").join(file);
            fs::create_dir_all(&kept)
                .and_then(|()| fs::copy(&path, &copy))
                .or_unavailable(Phase::Build, path.display())?;
        }
        let original = fs::read_to_string(&copy).or_unavailable(Phase::Build, copy.display())?;
        let mut bench = Self {
            chosen: chosen.argument.clone(),
            compiler: String::new(),
            tree: directory.join("tree"),
            output: directory.join("output"),
            log: directory.join("build.log"),
            mark: place.mark.clone(),
            arch: target.arch,
            image: super::build::image(target),
            arguments: key::make_arguments(target),
            modules: target.modules.clone(),
            file: file.to_string(),
            original,
            _lock: lock,
        };
        // An interrupted campaign may have left another file altered.
        for entry in fs::read_dir(&kept).or_unavailable(Phase::Build, kept.display())? {
            let path = entry.or_unavailable(Phase::Build, kept.display())?.path();
            let text = fs::read_to_string(&path).or_unavailable(Phase::Build, path.display())?;
            let file = path.file_name().unwrap_or_default().to_string_lossy().replace('%', "/");
            bench.write(&file, &text)?;
        }
        let arguments = key::build_arguments(target);
        let make = Make { arguments: &arguments, ..bench.make() };
        if !proof.exists() {
            make.configure(&ingredients.config)?;
            checked_config(&bench.output.join(".config"), ingredients)?;
        }
        make.build(&target.name)?;
        fs::write(&proof, ingredients.text()).or_unavailable(Phase::Build, proof.display())?;
        cache::touch(&directory);
        bench.compiler = bench.recorded()?;
        Ok(bench)
    }

    /// Returns the compile command that make recorded for the file.
    fn recorded(&self) -> Result<String> {
        let path = Path::new(&self.file);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let notes = self.output.join(path).with_file_name(format!(".{name}.o.cmd"));
        let text = fs::read_to_string(&notes).or_unavailable(Phase::Build, notes.display())?;
        let line = text.lines().next().unwrap_or_default();
        match line.split_once(" := ") {
            Some((name, command)) if name.starts_with("savedcmd_") => Ok(command.to_string()),
            // Linux before 6.3.
            Some((name, command)) if name.starts_with("cmd_") => Ok(command.to_string()),
            _ => Err(Error::unavailable(
                Phase::Build,
                format!("{} records no compile command", notes.display()),
            )),
        }
    }

    /// Only a link error about names is the text's fault.
    fn refused(&self, failure: Unavailable) -> Result<String> {
        let named = ["undefined reference", "undefined!", "modpost"];
        match failure.detail.iter().find(|line| named.iter().any(|word| line.contains(word))) {
            Some(line) => Ok(line.clone()),
            None => Err(failure.into()),
        }
    }

    /// Writes a text as a new file, because the tree is a hard link to the pristine one.
    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.tree.join(file);
        if fs::read_to_string(&path).is_ok_and(|now| now == text) {
            return Ok(());
        }
        let _ = fs::remove_file(&path);
        fs::write(&path, text).or_unavailable(Phase::Build, path.display())
    }

    fn make(&self) -> Make<'_> {
        Make {
            tree: &self.tree,
            output: &self.output,
            log: &self.log,
            arguments: &self.arguments,
            compiler: self.chosen.clone(),
            mark: &self.mark,
        }
    }
}

impl AlteredTree for Bench {
    fn original(&self) -> &str {
        &self.original
    }

    fn build(&self, text: &str) -> Result<std::result::Result<PathBuf, String>> {
        self.write(&self.file, text)?;
        let mut shell = command("sh");
        shell.current_dir(&self.output).args(["-c", &self.compiler]);
        let output = shell.output().or_unavailable(Phase::Build, "sh")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let name = Path::new(&self.file).file_name().unwrap_or_default().to_string_lossy();
            let what = complaint(&said, &name);
            let other = || Error::unavailable(Phase::Build, said.trim().to_string());
            return what.map(Err).ok_or_else(other);
        }
        let _ = fs::remove_file(&self.log);
        // make rebuilds only the file's directory, and the link reads this archive.
        let all = self.output.join("built-in.a");
        let touched = fs::File::options().append(true).open(&all);
        touched
            .and_then(|file| file.set_modified(SystemTime::now()))
            .or_unavailable(Phase::Build, all.display())?;
        let directory = self.file.split('/').next().unwrap_or_default();
        match self.make().rebuild(directory) {
            Ok(()) => Ok(Ok(self.output.join(self.image))),
            Err(Error::Unavailable(failure)) => self.refused(failure).map(Err),
            Err(error) => Err(error),
        }
    }

    fn beside(&self) -> Vec<PathBuf> {
        let modules = self.modules.iter().map(String::as_str);
        let found = ["vmlinux"].into_iter().chain(modules).map(|file| self.output.join(file));
        found.chain(super::build::relocated(&self.output, self.arch)).collect()
    }
}

/// Returns the compiler's error in the altered file, or in a header's macro that the file uses. A full
/// disk or a crash of the compiler does not count.
pub fn complaint(said: &str, file: &str) -> Option<String> {
    let machinery = ["fatal error:", "internal compiler error:"];
    let lines: Vec<&str> = said.lines().collect();
    let is_error = |line: &str| line.contains(" error: ");
    let is_used_in_file = |at: usize| {
        let mut notes = lines[at + 1..].iter().take_while(|line| !is_error(line));
        notes.any(|line| line.contains(file) && line.contains("in expansion of macro"))
    };
    let is_of_text = |&at: &usize| {
        let line = lines[at];
        !machinery.iter().any(|words| line.contains(words))
            && (is_error(line) && (line.contains(file) || is_used_in_file(at))
                || line.contains("undefined reference"))
    };
    let line = lines[(0..lines.len()).find(is_of_text)?];
    Some(line.split_once(" error: ").map_or(line, |(_, what)| what).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn only_messages_about_the_file_make_a_mutant_invalid() {
        let of = |said| complaint(said, "subr_kcov.c");
        let said = "cc -c x.c\n../subr_kcov.c:3:1: error: 'x' undeclared\nstop\n";
        assert_eq!(of(said).as_deref(), Some("'x' undeclared"));
        assert!(of("ld: subr_kcov.o: undefined reference to `f'").is_some());
        let said =
            "queue.h:9:1: error: no member\nsubr_kcov.c:3:1: note: in expansion of macro 'M'";
        assert_eq!(of(said).as_deref(), Some("no member"));
        let other =
            "queue.h:9:1: error: x\nother.c:3:1: error: y\nsubr_kcov.c:3:1: note: in expansion";
        assert_eq!(of(other), None);
        for said in [
            "other.c:3:1: error: 'x' undeclared",
            "subr_kcov.c:3:1: fatal error: no space left on device",
            "subr_kcov.c: internal compiler error: error: killed",
            "make: no target",
        ] {
            assert_eq!(of(said), None, "{said}");
        }
    }
}
