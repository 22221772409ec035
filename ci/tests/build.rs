//! Builds kernels into the cache, from a tree with an instant Makefile.

mod common;

use common::{Outcome, Place, outcome};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Records each build beside the tree.
const QUICK: &str =
    "vmlinux:\n\techo kernel >$(O)/vmlinux\n\ttouch $(O)/System.map\n\techo >>../built\n";
/// Never ends. Like a kernel's tree it runs a nested make, which records its process id there.
const ENDLESS: &str = "vmlinux:\n\t$(MAKE) below\n\ttouch ../went-on\nbelow:\n\techo $$$$ >../new; mv ../new ../pid; exec sleep 60\n";

struct Built {
    vm: Place,
    targets: String,
    tree: String,
}

impl Built {
    fn new(rule: &str) -> Self {
        let vm = Place::new();
        let text = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
        let configure = "allnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) $(O)/.config\n";
        let makefile = vm.write("tree/Makefile", format!("{configure}{rule}"));
        vm.write("tree/Kbuild", "");
        vm.write("configs/c", "CONFIG_A=y\n");
        let targets = vm.write(
            "targets.toml",
            "[[target]]\nname = 'a'\nkind = 'uml'\npackage = 'p'\nsuite = 's'\nconfig = ['c']\n\
             release = '7.'\nmemory = 1\nboot-limit = 1\nprogram-limit = 1\ndefault = true\n",
        );
        let tree = text(makefile.parent().expect("a directory").into());
        Self { targets: text(targets), tree, vm }
    }

    fn command(&self, word: &str) -> Command {
        let words = [word, "a", "--targets", &self.targets, "--source", &self.tree];
        self.vm.command(&words)
    }

    /// Builds. Returns the kernel, the messages, and the number of builds so far.
    fn build(&self) -> (PathBuf, String, usize) {
        let output = self.command("build").output().expect("kcov-vm starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let path = stdout.split(' ').nth(1).expect("a path").into();
        let built = fs::read_to_string(self.vm.path().join("built")).expect("a file");
        (path, stderr, built.lines().count())
    }
}

#[test]
fn a_missing_kernel_is_built_again() {
    let built = Built::new(QUICK);
    let (kernel, _, count) = built.build();
    assert_eq!(count, 1);
    let (same, said, count) = built.build();
    assert_eq!((same.as_path(), said.as_str(), count), (kernel.as_path(), "", 1));
    fs::remove_file(&kernel).expect("removed");
    let (_, _, count) = built.build();
    assert!(count == 2 && kernel.is_file());
}

#[test]
fn a_changed_tree_is_built_on_what_is_there() {
    let built = Built::new(&format!(
        "{QUICK}\t[ -e $(O)/part ] || echo >>../compiled\n\ttouch $(O)/part\n"
    ));
    let (before, ..) = built.build();
    built.vm.write("tree/file.c", "");
    let (after, _, count) = built.build();
    assert!(before != after && count == 2, "{}", after.display());
    let compiled = fs::read_to_string(built.vm.path().join("compiled")).expect("a file");
    assert_eq!(compiled.lines().count(), 1);
    // Another configuration has an output of its own.
    built.vm.write("configs/c", "CONFIG_B=y\n");
    built.build();
    let compiled = fs::read_to_string(built.vm.path().join("compiled")).expect("a file");
    assert_eq!(compiled.lines().count(), 2);
}

#[test]
fn the_key_is_that_of_the_kernel() {
    let built = Built::new(QUICK);
    let key = || {
        let Outcome { status, stdout, stderr } = outcome(&mut built.command("key"));
        assert_eq!(status, Some(0), "{stderr}");
        stdout
    };
    let (kernel, ..) = built.build();
    let (ingredients, last) = (key(), key());
    let last =
        last.lines().last().and_then(|line| line.strip_prefix("key ")).expect("a key").to_owned();
    let directory = kernel.parent().expect("a directory");
    assert!(directory.ends_with(format!("uml-{}", &last[..12])), "{last}");
    let kept = fs::read_to_string(directory.join("key.txt")).expect("a file");
    assert_eq!(ingredients, format!("{kept}key {last}\n"));
    built.vm.write("configs/c", "CONFIG_B=y\n");
    assert_ne!(key(), ingredients);
}

/// Options of the user's are part of the key, and the kernel has them, or the build fails.
#[test]
fn more_options_make_another_kernel() {
    let built = Built::new(QUICK);
    let (own, other) = (built.vm.write("own", "CONFIG_OWN=y"), built.vm.write("o", "CONFIG_O=y"));
    built.vm.write("configs/ready.config", "CONFIG_READY=y");
    let run = |word, names: &[&str]| {
        let mut command = built.command(word);
        let options = names.iter().flat_map(|name| ["--config", *name]);
        let Outcome { status, stdout, stderr } = outcome(command.args(options));
        (status, stdout, stderr)
    };
    let own = own.to_str().expect("UTF-8");
    let names = [own, "ready", other.to_str().expect("UTF-8")];
    let (status, said, why) = run("build", &names);
    assert_eq!(status, Some(0), "{why}");
    let kernel = Path::new(said.split(' ').nth(1).expect("a path"));
    let config = fs::read_to_string(kernel.with_file_name("config")).expect("a file");
    let lines: Vec<_> = config.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["CONFIG_A=y", "CONFIG_OWN=y", "CONFIG_READY=y", "CONFIG_O=y"]);
    let keys = [&[][..], &[own], &["ready"], &names].map(|names| run("key", names).1);
    assert!(said.contains(&keys[3].rsplit_once("key ").expect("a key").1[..12]), "{keys:?}");
    assert_eq!(BTreeSet::from(keys).len(), 4);

    let drop = "allnoconfig:\n\tgrep -v OWN $(KCONFIG_ALLCONFIG) >$(O)/.config\n";
    built.vm.write("tree/Makefile", format!("{drop}{QUICK}"));
    let (status, _, why) = run("build", &["ready", own]);
    assert_eq!(status, Some(69), "{why}");
    assert!(why.contains("build: the kernel's configuration lacks CONFIG_OWN=y"), "{why}");
}

#[test]
fn make_does_not_outlive_a_runner_that_is_killed() {
    let built = Built::new(ENDLESS);
    let mut runner = built.command("build").stderr(Stdio::null()).spawn().expect("kcov-vm starts");
    let pid = built.vm.path().join("pid");
    let begun = Instant::now();
    let waits = || {
        sleep(Duration::from_millis(20));
        begun.elapsed() < Duration::from_secs(30)
    };
    while !pid.exists() && waits() {}
    let process = fs::read_to_string(&pid).expect("make has begun");
    runner.kill().expect("killed");
    runner.wait().expect("gone");
    // Without a parent that waits, an ended process stays a zombie.
    let lives = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.trim()));
        stat.is_ok_and(|text| !text.contains(") Z "))
    };
    while lives() && waits() {}
    assert!(!lives(), "process {process} goes on");
    assert!(!built.vm.path().join("went-on").exists());
}
