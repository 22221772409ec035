//! Builds a kernel again and again from the user's tree, with one altered file.

use super::elf;
use crate::cache::{Cache, Lock};
use crate::error::{Error, OrUnavailable as _, Phase, Result, Unavailable};
use crate::hash;
use crate::kernel::{AlteredTree, complaint};
use crate::run::command;
use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The user's tree and command.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The tree.
    pub tree: PathBuf,
    /// The shell command, with placeholders.
    pub command: String,
}

/// The tree and its altered file.
#[derive(Debug)]
pub struct Bench {
    recipe: Recipe,
    file: PathBuf,
    original: String,
    kernel: PathBuf,
    log: PathBuf,
    /// The code of the first unaltered kernel.
    first: Vec<u8>,
    /// The code of the last unaltered kernel.
    last: RefCell<Code>,
    /// The file that keeps the original.
    copy: PathBuf,
    _lock: Lock,
}

impl Bench {
    /// Builds the unaltered kernel twice. Both have to have the same code.
    pub fn open(recipe: &Recipe, file: &str, cache: &Cache) -> Result<Self> {
        let path = recipe.tree.join(file);
        let name = hash::bytes(recipe.tree.as_os_str().as_encoded_bytes());
        let name = format!("netbsd-{}", &name[..12]);
        let lock = cache.lock(Phase::Build, &format!("bench-{name}"))?;
        let directory = cache.benches().join(name);
        fs::create_dir_all(&directory).or_unavailable(Phase::Build, directory.display())?;
        let copy = directory.join("original");
        if copy.exists() {
            let why = format!(
                "{}: an interrupted run has left it altered; copy {} back, or delete that copy",
                path.display(),
                copy.display()
            );
            return Err(Error::unavailable(Phase::Build, why));
        }
        let original = fs::read_to_string(&path).or_unavailable(Phase::Source, path.display())?;
        fs::write(&copy, &original).or_unavailable(Phase::Build, copy.display())?;
        let mut bench = Self {
            recipe: recipe.clone(),
            file: path,
            original,
            kernel: directory.join("kernel"),
            log: directory.join("build.log"),
            first: Vec::new(),
            last: RefCell::default(),
            copy,
            _lock: lock,
        };
        bench.first = bench.unaltered()?.bytes;
        let again = bench.unaltered()?;
        if !again.is(&bench.first) {
            let why = "--build: two builds of the unaltered file differ in more than the version";
            return Err(Error::unavailable(Phase::Build, why));
        }
        *bench.last.get_mut() = again;
        Ok(bench)
    }

    fn unaltered(&self) -> Result<Code> {
        let fail =
            |why| Error::unavailable(Phase::Build, format!("the unaltered file fails: {why}"));
        self.build(&self.original)?.map_err(fail)
    }

    fn build(&self, text: &str) -> Result<std::result::Result<Code, String>> {
        self.write(text).or_unavailable(Phase::Build, self.file.display())?;
        let _ = fs::remove_file(&self.kernel);
        let line = filled(&self.recipe.command, &self.recipe.tree, &self.kernel);
        let mut shell = command("sh");
        shell.current_dir(&self.recipe.tree).args(["-c", &line]);
        let output = shell.output().or_unavailable(Phase::Build, "sh")?;
        let said = [output.stdout, output.stderr].concat();
        fs::write(&self.log, &said).or_unavailable(Phase::Build, self.log.display())?;
        let said = String::from_utf8_lossy(&said);
        let fail = |why: String| {
            let mut last: Vec<_> = said.lines().rev().take(5).map(str::to_string).collect();
            last.reverse();
            let log = self.log.display();
            Unavailable::new(Phase::Build, format!("--build: {why} (log: {log})")).detail(last)
        };
        if !output.status.success() {
            let name = self.file.file_name().unwrap_or_default().to_string_lossy();
            return match complaint(&said, &name) {
                Some(why) => Ok(Err(why)),
                None => Err(fail(output.status.to_string()).into()),
            };
        }
        let bytes = fs::read(&self.kernel)
            .map_err(|error| fail(format!("it left no kernel at {{kernel}}: {error}")))?;
        match Code::of(&bytes) {
            Some(code) => Ok(Ok(code)),
            None => Err(fail("the file at {kernel} is not a kernel for amd64".into()).into()),
        }
    }

    /// Writes the text into the tree. make compares whole seconds, so the file has to be newer than
    /// any object.
    fn write(&self, text: &str) -> std::io::Result<()> {
        fs::write(&self.file, text)?;
        let newer = SystemTime::now() + Duration::from_secs(2);
        File::options().append(true).open(&self.file)?.set_modified(newer)
    }
}

impl AlteredTree for Bench {
    fn original(&self) -> &str {
        &self.original
    }

    fn compile(&self, text: &str) -> Result<std::result::Result<Vec<u8>, String>> {
        let mut code = match self.build(text)? {
            Ok(code) => code,
            Err(why) => return Ok(Err(why)),
        };
        if code.version != self.last.borrow().version {
            // The build number has got another digit, which may move other data.
            self.last.replace(self.unaltered()?);
            code = match self.build(text)? {
                Ok(code) => code,
                Err(why) => return Ok(Err(why)),
            };
        }
        let same = code.is(&self.last.borrow().bytes);
        Ok(Ok(if same { self.first.clone() } else { code.bytes }))
    }

    fn link(&self) -> Result<std::result::Result<PathBuf, String>> {
        Ok(Ok(self.kernel.clone()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let restored = self.write(&self.original).and_then(|()| fs::remove_file(&self.copy));
        if let Err(error) = restored {
            eprintln!("{}: could not be restored: {error}", self.file.display());
        }
    }
}

/// The parts of a kernel that are loaded, without the texts of its version.
#[derive(Debug, Default)]
struct Code {
    bytes: Vec<u8>,
    /// The length of the texts.
    version: usize,
}

impl Code {
    /// The texts hold the number of the build and its time. The rest depends on the sources only.
    fn of(kernel: &[u8]) -> Option<Self> {
        const START: &[u8] = b"NetBSD ";
        let mut code = Self { bytes: elf::loaded(kernel)?.concat(), version: 0 };
        let mut at = 0;
        while let Some(next) = code.bytes[at..].windows(START.len()).position(|w| w == START) {
            at += next;
            let rest = &mut code.bytes[at..];
            let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            if rest[..end].windows(3).any(|w| w == b") #") {
                rest[..end].fill(0);
                code.version += end;
            }
            at += end;
        }
        Some(code)
    }

    fn is(&self, bytes: &[u8]) -> bool {
        self.bytes == bytes
    }
}

/// Replaces the placeholders of a command.
fn filled(command: &str, tree: &Path, kernel: &Path) -> String {
    let path = |path: &Path| path.display().to_string();
    command.replace("{tree}", &path(tree)).replace("{kernel}", &path(kernel))
}

#[cfg(test)]
mod tests {
    use super::super::elf::tests::{file, ident};
    use super::*;

    fn kernel(text: &str) -> Vec<u8> {
        let mut bytes = file(1 << 63, text.as_bytes(), false);
        // Its only segment is loaded.
        bytes[64] = 1;
        bytes
    }

    fn code(text: &str) -> Code {
        Code::of(&kernel(text)).expect("a kernel")
    }

    #[test]
    fn the_version_is_not_code() {
        let of = |version: &str, code: &str| {
            format!(
                "NetBSD 10.1\0{code}\0NetBSD 10.1 (K) #{version}\n\0@(#)NetBSD 10.1 (K) #{version}\n\0end"
            )
        };
        let one = code(&of("7: Sun", "code"));
        assert!(one.is(&code(&of("8: Mon", "code")).bytes));
        assert!(!one.is(&code(&of("7: Sun", "cod3")).bytes));
        assert_eq!(code(&of("10: Sun", "code")).version, one.version + 2);
        assert!(Code::of(b"text").is_none());
        assert!(Code::of(&file(1 << 63, &ident(), true)).is_some_and(|code| code.bytes.is_empty()));
    }

    fn tree() -> (tempfile::TempDir, Cache) {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("tree")).expect("a directory");
        fs::write(directory.path().join("tree/f.c"), "good").expect("a file");
        let cache = Cache::open(Some(&directory.path().join("cache"))).expect("a cache");
        (directory, cache)
    }

    /// The command makes a kernel of the file's text.
    fn open(directory: &Path, cache: &Cache, command: &str) -> Result<Bench> {
        fs::write(directory.join("head"), kernel("")).expect("a file");
        let command = command.replace("HEAD", &directory.join("head").display().to_string());
        Bench::open(&Recipe { tree: directory.join("tree"), command }, "f.c", cache)
    }

    /// The length in the table of segments must fit, so the text replaces the end of the header.
    const BUILD: &str = "grep -q bad f.c && { echo 'f.c:1:1: error: bad'; exit 1; }; \
        grep -q fail f.c && exit 2; \
        cp HEAD {kernel} && grep -q other f.c && printf other >> {kernel} && \
        printf '\\005' | dd of={kernel} bs=1 seek=96 conv=notrunc 2> /dev/null; test -f {kernel}";

    #[test]
    fn the_original_comes_back() {
        let (directory, cache) = tree();
        let file = directory.path().join("tree/f.c");
        let text = || fs::read_to_string(&file).expect("the file");
        let bench = open(directory.path(), &cache, BUILD).expect("built");
        let same = bench.compile("good still").expect("built").expect("a kernel");
        assert_eq!(Ok(same), bench.compile("good").expect("built"));
        let other = bench.compile("other").expect("built").expect("a kernel");
        assert_eq!(other, b"other");
        assert_eq!(bench.compile("bad").expect("not built"), Err("bad".into()));
        let error = bench.compile("fail").expect_err("the command fails");
        assert_eq!((error.status(), text().as_str()), (69, "fail"));
        drop(bench);
        assert_eq!(text(), "good");
        drop(open(directory.path(), &cache, BUILD).expect("built again"));
        assert!(open(directory.path(), &cache, "false").is_err());
        let different = "cp HEAD {kernel}; date +%N | tail -c 6 | head -c 5 >> {kernel}; \
            printf '\\005' | dd of={kernel} bs=1 seek=96 conv=notrunc 2> /dev/null";
        let error = open(directory.path(), &cache, different).expect_err("two kernels");
        assert!(error.to_string().contains("differ"), "{error}");
    }

    #[test]
    fn a_file_that_stayed_altered_is_not_an_original() {
        let (directory, cache) = tree();
        let bench = open(directory.path(), &cache, BUILD).expect("built");
        let copy = bench.kernel.with_file_name("original");
        drop(bench);
        assert!(!copy.exists());
        fs::write(&copy, "the original").expect("a file");
        let error = open(directory.path(), &cache, BUILD).expect_err("it has to be refused");
        assert!(error.to_string().contains("copy"), "{error}");
    }
}
