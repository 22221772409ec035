//! Tests in a guest that programs in C and Python use libkcov on a kernel with kcov.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs, and Debian's python3-numpy.

mod common;

use common::{Outcome, outcome, vm};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of kcov/capi.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kcov/capi").join(name);
    path.canonicalize().expect("it exists").to_str().expect("UTF-8").into()
}

/// The shared library, from the same build as this test.
fn library() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "-p", "kcov-capi"]);
    assert!(cargo.status().expect("cargo starts").success());
    let own = std::env::current_exe().expect("this program");
    own.ancestors().nth(2).expect("the profile's directory").join("libkcov.so")
}

/// Runs a script of kcov/capi/python with Debian's Python.
fn python(script: &str) -> Outcome {
    let carried = "import numpy, sysconfig; print(sysconfig.get_path('stdlib'), *numpy.__path__)";
    let python = outcome(Command::new("/usr/bin/python3").args(["-c", carried]));
    assert_eq!(python.status, Some(0), "install python3-numpy: {}", python.stderr);
    let (script, library) = (file(script), library());
    let mut command = vm(&["exec", "linux-uml", "--env", "PYTHONDONTWRITEBYTECODE=1", "--env"]);
    command.arg(format!("PYTHONPATH={}", file("python"))).args(["--carry", &file("python")]);
    command.arg("--env").arg(format!("LIBKCOV={}", library.display()));
    for path in
        [library.to_str().expect("UTF-8")].into_iter().chain(python.stdout.split_whitespace())
    {
        command.args(["--carry", path]);
    }
    outcome(command.args(["--", "/usr/bin/python3", &script]))
}

#[test]
fn a_c_program_uses_each_function() {
    let library = library();
    let path = format!("-Wl,-rpath,{}", library.parent().expect("a directory").display());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("use-libkcov");
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&program).arg(file("libkcov/tests/use.c")).arg(library).arg(path);
    let compiled = outcome(&mut compiler);
    assert_eq!(compiled.status, Some(0), "{}", compiled.stderr);
    let mut command = vm(&["exec", "linux-uml", "--"]);
    let Outcome { status, stdout, stderr } = outcome(command.arg(program).arg("/tmp/map"));
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (Some(0), "ok\n", ""));
}

#[test]
fn the_python_module_passes_its_tests() {
    let Outcome { status, stdout, stderr } = python("python/tests/on_kernel.py");
    assert_eq!((status, stdout.as_str()), (Some(0), ""), "{stderr}");
    let passed = stderr.lines().filter(|line| line.ends_with(" ... ok")).count();
    assert!(stderr.contains(&format!("Ran {passed} tests")) && passed > 10, "{stderr}");
}

#[test]
fn the_example_draws_two_calls() {
    let Outcome { status, stdout, stderr } = python("python/examples/compare.py");
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    // Only /proc has processes, and both walk a path.
    let bars = |name: &str| -> (usize, usize) {
        let line = stdout.lines().find(|line| line.ends_with(&format!(" {name}")));
        let (ours, others) = line.expect("its line").split_once('|').expect("two bars");
        (ours.matches('#').count(), others.matches('#').count())
    };
    assert!(matches!(bars("pid_revalidate"), (0, 1..)), "{stdout}");
    assert!(matches!(bars("link_path_walk"), (1.., 2..)), "{stdout}");
}
