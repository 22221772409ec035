//! A program in a guest has the same path, libraries, devices, streams and files as on the host.
//! Most tests run a program on both and compare.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs.

mod common;

use common::{Outcome, Place, VM, outcome, vm};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};

fn exec(options: &[&str], program: &[&str]) -> Command {
    vm(&[&["exec", "linux-uml"], options, &["--"], program].concat())
}

/// Runs a program on the host and in a guest, in this directory. Returns what both say.
#[track_caller]
fn on_both(directory: &Path, options: &[&str], program: &[&str]) -> String {
    let host = outcome(Command::new(program[0]).args(&program[1..]).current_dir(directory));
    let guest = outcome(exec(options, program).current_dir(directory));
    assert_eq!(guest.stdout, host.stdout, "{}", guest.stderr);
    assert_eq!((guest.status, guest.stderr), (host.status, host.stderr), "{}", guest.stdout);
    host.stdout
}

/// Runs a shell in a guest with other programs.
#[track_caller]
fn script(shell: &str, programs: &[&str], text: &str) -> String {
    let carried: Vec<_> = programs.iter().flat_map(|name| ["--carry", *name]).collect();
    let Outcome { status, stdout, stderr } = outcome(&mut exec(&carried, &[shell, "-c", text]));
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    stdout
}

#[test]
fn a_program_stays_where_it_is() {
    let place = Place::for_programs();
    place.program("bin/tool", "OWN", &[]);
    place.write("share/data", "beside\n");
    let said = on_both(place.path(), &["--carry", "share"], &["bin/tool", "../share/data"]);
    let own = place.file("bin/tool");
    assert_eq!(said, format!("bin/tool\n{own}\nbeside\n"));
    on_both(place.path(), &["--carry", "share"], &[&own, "../share/data"]);
    // By another way, and by a link.
    let other = format!("{}/../bin/tool", place.file("bin"));
    on_both(place.path(), &["--carry", "share"], &[&other, "../share/data"]);
    std::os::unix::fs::symlink("bin/tool", place.path().join("link")).expect("a link");
    on_both(place.path(), &["--carry", "share"], &["./link", "../share/data"]);
}

#[test]
fn containers_can_change_their_root() {
    let text = "mkdir /new && mount -t tmpfs none /new && mkdir /new/old && cd /new && \
                unshare --mount pivot_root . old && echo changed";
    let programs = ["/bin/mkdir", "/bin/mount", "/usr/bin/unshare", "/sbin/pivot_root"];
    assert_eq!(script("/bin/sh", &programs, text), "changed\n");
}

#[test]
fn a_program_does_not_replace_another_of_its_name() {
    let place = Place::for_programs();
    place.program("sh", "SYSTEM", &[]);
    assert_eq!(on_both(place.path(), &[], &["./sh"]), "4\n");
}

#[test]
fn each_program_finds_its_own_libraries() {
    let place = Place::for_programs();
    for (name, flags) in [("a", "--enable-new-dtags"), ("b", "--disable-new-dtags")] {
        let library = format!("{name}/lib/libx.so");
        place.library(
            &library,
            &format!("const char *name(void) {{ return \"of {name}\"; }}"),
            &[],
        );
        // The system has one of this name, too.
        place.library(&format!("{name}/lib/libz.so.1"), "int own(void) { return 7; }", &[]);
        let paths = format!("-Wl,{flags},-rpath,$ORIGIN/../lib");
        let z = place.file(&format!("{name}/lib/libz.so.1"));
        let program = format!("{name}/bin/p");
        place.program(&program, "NAMED", &[&place.file(&library), &z, &paths]);
    }
    // The loader's $ORIGIN is not the directory of a link.
    std::os::unix::fs::symlink("a/bin/p", place.path().join("link")).expect("a link");
    assert_eq!(on_both(place.path(), &[], &["./link"]), "of a 7\n");
    let (a, b) = (place.file("a/bin/p"), place.file("b/bin/p"));
    let said = on_both(place.path(), &["--carry", &b], &[&a, &b]);
    assert_eq!(said, "of a 7\nof b 7\n");
    assert_eq!(on_both(place.path(), &["--carry", &a], &[&b, &a]), "of b 7\nof a 7\n");
}

#[test]
fn a_library_brings_its_libraries() {
    let place = Place::for_programs();
    place.library("private/libinner.so", "const char *inner(void) { return \"inner\"; }", &[]);
    let text = "const char *inner(void); const char *name(void) { return inner(); }";
    let inner = place.file("private/libinner.so");
    let path = "-Wl,-rpath,$ORIGIN/../private";
    place.library("plugins/plugin.so", text, &[&inner, path]);
    place.program("load", "LOAD", &["-Wl,-rpath,$ORIGIN/plugins", "-ldl"]);
    let plugin = place.file("plugins/plugin.so");
    let program = [place.file("load")];
    let words = [program[0].as_str(), "plugin.so"];
    assert_eq!(on_both(place.path(), &["--carry", &plugin], &words), "inner\n");
    // As a part of a directory.
    let words = [program[0].as_str(), plugin.as_str()];
    assert_eq!(on_both(place.path(), &["--carry", "plugins"], &words), "inner\n");
}

/// A crate's test data may include untrusted programs, so the runner must not start their loader.
#[test]
fn what_is_in_a_directory_starts_nothing_on_the_host() {
    let place = Place::for_programs();
    let started = place.file("started");
    let loader = place.write("loader", format!("#!/bin/sh\n: >{started}\n"));
    fs::set_permissions(&loader, fs::Permissions::from_mode(0o755)).expect("permissions");
    let option = format!("-Wl,--dynamic-linker={}", loader.display());
    place.program("data/odd", "WHO", &[&option]);
    let odd = place.file("data/odd");
    let words = ["test", "-x", &odd];
    let said = outcome(exec(&["--carry", "data"], &words).current_dir(place.path()));
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    assert!(!Path::new(&started).exists());
}

#[test]
fn the_loaders_variables_are_the_programs() {
    let place = Place::for_programs();
    place.library("elsewhere/libx.so", "const char *name(void) { return \"elsewhere\"; }", &[]);
    place.library("z/libz.so.1", "int own(void) { return 8; }", &[]);
    let (x, z) = (place.file("elsewhere/libx.so"), place.file("z/libz.so.1"));
    place.program("p", "NAMED", &[&x, &z]);
    let path = format!("{}:{}", place.file("elsewhere"), place.file("z"));
    let program = place.file("p");
    let given = format!("LD_LIBRARY_PATH={path}");
    let said = outcome(&mut exec(&["--env", &given], &[&program]));
    assert_eq!((said.status, said.stdout.as_str()), (Some(0), "elsewhere 8\n"), "{}", said.stderr);
    let said = outcome(exec(&[], &[&program]).env("LD_LIBRARY_PATH", &path));
    assert_eq!((said.status, said.stdout.as_str()), (Some(0), "elsewhere 8\n"), "{}", said.stderr);
    let said = outcome(&mut exec(&[], &[&program]));
    assert_eq!(said.status, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("libx.so"), "{}", said.stderr);
}

/// The guest's own loader gives the answer of the host's.
#[test]
fn both_loaders_list_the_same_files() {
    let list = |text: &str| {
        let file = |line: &str| line.rsplit_once(" (").map(|(file, _)| file.trim().to_string());
        // The vDSO belongs to the kernel.
        let files = text.lines().filter_map(file).filter(|file| !file.contains("vdso"));
        files.collect::<Vec<_>>()
    };
    let loader = "/lib64/ld-linux-x86-64.so.2";
    for program in ["/bin/bash", "/bin/ls", "/usr/bin/perl", env!("CARGO")] {
        let host = outcome(Command::new(loader).args(["--list", program]));
        let words = [loader, "--list", program];
        let guest = outcome(&mut exec(&["--carry", program], &words));
        assert_eq!(guest.status, Some(0), "{program}: {}", guest.stderr);
        let (host, guest) = (list(&host.stdout), list(&guest.stdout));
        assert!(!host.is_empty());
        assert_eq!(guest, host, "{program}");
    }
}

#[test]
fn a_thread_can_be_cancelled() {
    let place = Place::for_programs();
    place.program("cancel", "CANCEL", &["-pthread"]);
    assert_eq!(on_both(place.path(), &[], &["./cancel"]), "cancelled\n");
}

#[test]
fn shared_memory_semaphores_queues_and_terminals_work() {
    let place = Place::for_programs();
    place.program("posix", "POSIX", &["-pthread", "-lrt"]);
    assert_eq!(on_both(place.path(), &[], &["./posix"]), "all work\n");
}

#[test]
fn the_shells_devices_are_there() {
    let text = "cat <(echo one) /dev/fd/3 3< <(echo two); echo three >/dev/stdout; \
                echo four | cat /dev/stdin; { echo five >/dev/stderr; } 2>&1";
    let said = script("/bin/bash", &["/bin/cat"], text);
    assert_eq!(said, "one\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn the_usual_directories_and_names_are_there() {
    let text = "stat -Lc '%a %u %n' / /tmp /var/tmp /run /run/lock /run/user /run/utmp /var/run \
                /var/lock /dev/shm /dev/mqueue /root /mnt /etc/mtab && \
                hostname && cat /etc/hostname && id -un && \
                ls -d /usr/lib /var/log /opt /srv /home && ulimit -Hn && \
                cat /proc/sys/net/ipv4/ping_group_range";
    let programs = ["/bin/stat", "/bin/hostname", "/bin/cat", "/usr/bin/id", "/bin/ls"];
    let said = script("/bin/sh", &programs, text);
    let expected = "755 0 /\n1777 0 /tmp\n1777 0 /var/tmp\n755 0 /run\n1777 0 /run/lock\n\
                    755 0 /run/user\n644 0 /run/utmp\n755 0 /var/run\n1777 0 /var/lock\n\
                    1777 0 /dev/shm\n1777 0 /dev/mqueue\n\
                    700 0 /root\n755 0 /mnt\n444 0 /etc/mtab\nkcov-vm\nkcov-vm\nroot\n\
                    /home\n/opt\n/srv\n/usr/lib\n/var/log\n524288\n0\t2147483647\n";
    assert_eq!(said, expected);
}

/// The databases of services and protocols, the system's name and the time zone.
#[test]
fn the_system_is_described_as_on_the_host() {
    let place = Place::for_programs();
    let text = "getent services https; getent services 53/udp; getent protocols tcp; \
                . /etc/os-release; echo $NAME $VERSION_ID; date -d @0";
    let carried = ["--carry", "/usr/bin/getent", "--carry", "/bin/date"];
    let said = on_both(place.path(), &carried, &["/bin/sh", "-c", text]);
    assert!(said.contains("443/tcp") && said.contains("TCP") && said.contains("1970"), "{said}");
    let said = script("/bin/sh", &["/bin/cat"], "cat /etc/machine-id /var/lib/dbus/machine-id");
    let ids: Vec<_> = said.lines().map(|id| u128::from_str_radix(id, 16)).collect();
    assert!(ids.len() == 2 && ids[0] == ids[1] && ids[0].as_ref().is_ok_and(|id| *id != 0));
}

#[test]
fn locales_are_those_of_the_host() {
    let place = Place::for_programs();
    let path = place.write("text", "\u{e9}\u{20ac}\n");
    let mut command = exec(&["--stdin", "--env", "LC_ALL=C.UTF-8"], &["wc", "-m"]);
    let said = outcome(command.stdin(File::open(path).expect("a file")));
    assert_eq!((said.status, said.stdout.as_str()), (Some(0), "3\n"), "{}", said.stderr);
}

/// Each script prints its interpreter's options, its name and its arguments.
#[test]
fn scripts_have_the_interpreters_of_the_host() {
    let place = Place::for_programs();
    let script = |name: &str, first: &str, text: &str| {
        let path = place.write(name, format!("#!{first}\n{text}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
    };
    let text = "echo \"$- $0 $*\"";
    script("bin/own", "/bin/sh -u", "echo \"own: $- $0 $*\"");
    script("bin/outer", &format!("{} option", place.file("bin/own")), "");
    for (name, first) in [
        ("plain", "/bin/sh"),
        ("blanks", " \t/bin/sh \t-eu \t"),
        ("env", "/usr/bin/env sh"),
        ("split", "/usr/bin/env -S sh -e -u"),
        ("nested", &*place.file("bin/own")),
        ("options", &format!("{} one two ", place.file("bin/own"))),
        ("deep", &place.file("bin/outer")),
    ] {
        script(name, first, text);
        let said = on_both(place.path(), &[], &[&format!("./{name}"), "a b", "c"]);
        assert!(said.ends_with(" a b c\n"), "{name}: {said}");
    }
}

/// Arguments and variables may hold any bytes.
#[test]
fn words_arrive_as_they_are() {
    let bytes: Vec<u8> = (1..=255).collect();
    let words = ["", " ", "two\nlines\n", "-v", "\\x41", "*"].map(OsStr::new);
    let words = words.into_iter().chain([OsStr::from_bytes(&bytes)]);
    let run = |command: &mut Command| {
        command.env("KCOV_TEST", OsStr::from_bytes(&bytes[..]));
        command.args(["/bin/sh", "-c", "printf '%s|' \"$KCOV_TEST\" \"$@\"", "sh"]);
        command.args(words.clone()).output().expect("it starts").stdout
    };
    let host = run(Command::new("env").arg("--"));
    assert_eq!(host.iter().filter(|byte| **byte == b'\n').count(), 4);
    assert_eq!(run(&mut vm(&["exec", "linux-uml", "--env", "KCOV_TEST", "--"])), host);
}

#[test]
fn the_working_directory_is_the_same_or_refused() {
    for directory in ["/sys/kernel", "/proc/sys/kernel", "/dev", "/"] {
        let said = on_both(Path::new(directory), &[], &["/bin/sh", "-c", "pwd"]);
        assert_eq!(said, format!("{directory}\n"));
    }
    let place = Place::for_programs();
    let text = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", text, "sh", VM, "exec", "linux-uml"]);
    let said = outcome(command.args(["--", "/bin/sh", "-c", "pwd"]).current_dir(place.path()));
    assert_eq!((said.status, said.stdout.as_str()), (Some(2), ""), "{}", said.stderr);
    assert!(said.stderr.contains("the working directory: No such file"), "{}", said.stderr);
    // A directory that only the host's /proc has.
    let mut command = exec(&[], &["/bin/sh", "-c", "pwd"]);
    let said = outcome(command.current_dir(format!("/proc/{}", std::process::id())));
    assert_eq!((said.status, said.stdout.as_str()), (Some(69), ""), "{}", said.stderr);
    assert!(said.stderr.contains("the guest has no directory /proc/"), "{}", said.stderr);
}

#[test]
fn output_to_one_file_keeps_its_order() {
    let place = Place::for_programs();
    let path = place.path().join("out");
    let text = "i=0; while [ $i -lt 50 ]; do echo $i; echo $((i + 1)) >&2; i=$((i + 2)); done";
    for words in [vec!["exec", "linux-uml", "--"], vec!["runner", "linux-uml"]] {
        let file = File::create(&path).expect("a file");
        let mut command = vm(&words);
        command.args(["/bin/sh", "-c", text]).stdout(file.try_clone().expect("a copy"));
        assert!(command.stderr(file).status().expect("it starts").success());
        let expected: String = (0..50).map(|number| format!("{number}\n")).collect();
        assert_eq!(fs::read_to_string(&path).expect("the output"), expected);
    }
}

#[test]
fn a_reader_that_leaves_ends_the_guest() {
    for target in ["/bin/bash", "/bin/sh"] {
        let text = "while :; do echo y; done";
        let mut command = exec(&[], &[target, "-c", text]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, "y\n");
        assert_eq!(child.wait().expect("it ends").code(), Some(128 + 13));
    }
}

#[test]
fn large_output_arrives_whole() {
    let text = "i=0; while [ $i -lt 20000 ]; do echo 0123456789 $i; i=$((i + 1)); done";
    let said = script("/bin/sh", &[], text);
    assert_eq!(said.lines().count(), 20000);
    assert!(said.ends_with("0123456789 19999\n"));
}

#[test]
fn standard_input_may_be_large_empty_or_binary() {
    let count = |size: u64| {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(size).expect("a hole");
        let mut command = exec(&["--stdin"], &["wc", "-c"]);
        let Outcome { status, stdout, stderr } = outcome(command.stdin(file));
        assert_eq!(status, Some(0), "{stderr}");
        assert_eq!(stdout, format!("{size}\n"));
    };
    count(0);
    count(160 << 20);
    let place = Place::for_programs();
    let all: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let path = place.write("in", &all);
    let mut command = exec(&["--stdin"], &["cat"]);
    command.stdin(File::open(path).expect("a file"));
    assert_eq!(command.output().expect("it starts").stdout, all);
    let file = tempfile::tempfile().expect("a file");
    file.set_len(600 << 20).expect("a hole");
    let said = outcome(exec(&["--stdin"], &["cat"]).stdin(file));
    assert_eq!(said.status, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("including standard input"), "{}", said.stderr);
}

#[test]
fn copies_keep_owners_permissions_and_types() {
    let place = Place::for_programs();
    let file = place.write("file", "x");
    // Only root can do this. Otherwise the owner is the user, who is root in the guest.
    let is_root = chown(&file, Some(65534), Some(65534)).is_ok();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o6711)).expect("permissions");
    let made = Command::new("mkfifo").arg(place.path().join("fifo")).status().expect("mkfifo");
    assert!(made.success());
    let text = format!("cd {} && stat -c '%u %g %a %F' file fifo /bin/su", place.path().display());
    let directory = place.path().to_str().expect("UTF-8");
    let said = script("/bin/sh", &["/bin/stat", "/bin/su", directory], &text);
    let owner = if is_root { "65534 65534" } else { "0 0" };
    let su = fs::metadata("/bin/su").expect("a program");
    let su = format!("{} {} {:o}", su.uid(), su.gid(), su.mode() & 0o7777);
    let fifo = fs::metadata(place.path().join("fifo")).expect("a pipe").mode() & 0o777;
    let expected = format!("{owner} 6711 regular file\n0 0 {fifo:o} fifo\n{su} regular file\n");
    assert_eq!(said, expected);
}

/// A program that is setuid runs as that user.
#[test]
fn a_setuid_program_runs_as_its_owner() {
    let place = Place::for_programs();
    place.program("who", "WHO", &[]);
    let who = place.file("who");
    // A link would lead around the owner.
    let is_root = chown(&who, Some(65534), None).is_ok();
    fs::set_permissions(&who, fs::Permissions::from_mode(0o4755)).expect("permissions");
    let said = script("/bin/sh", &[&who], &who);
    assert_eq!(said, if is_root { "65534\n" } else { "0\n" });
}

/// Cargo's promises: the build script's files and variables, and the whole workspace.
#[test]
fn tests_find_the_files_that_cargo_promises() {
    let place = Place::for_programs();
    place.write("Cargo.toml", "[workspace]\nmembers = ['member']\nresolver = '2'\n");
    place.write("shared/data", "shared");
    place.write("member/data", "own");
    place.write(
        "member/Cargo.toml",
        "[package]\nname = 'member'\nversion = '0.1.0'\nedition = '2021'\n",
    );
    place.write(
        "member/build.rs",
        "fn main() {\n\
         let out = std::env::var(\"OUT_DIR\").unwrap();\n\
         std::fs::write(out + \"/made\", \"made\").unwrap();\n\
         println!(\"cargo:rustc-env=TOLD=told\");\n\
         println!(\"cargo::rustc-env=TOLD_AGAIN=again\");\n}\n",
    );
    place.write("member/src/main.rs", "fn main() { println!(\"a program\"); }\n");
    place.write(
        "member/tests/files.rs",
        "use std::fs::read_to_string;\n\
         use std::process::Command;\n\
         #[test]\nfn files() {\n\
         assert_eq!(read_to_string(\"data\").unwrap(), \"own\");\n\
         assert_eq!(read_to_string(\"../shared/data\").unwrap(), \"shared\");\n\
         assert_eq!(read_to_string(concat!(env!(\"OUT_DIR\"), \"/made\")).unwrap(), \"made\");\n\
         let run = std::env::var(\"OUT_DIR\").unwrap() + \"/made\";\n\
         assert_eq!(read_to_string(run).unwrap(), \"made\");\n\
         assert_eq!(std::env::var(\"TOLD\").unwrap(), \"told\");\n\
         assert_eq!(std::env::var(\"TOLD_AGAIN\").unwrap(), \"again\");\n\
         std::fs::write(concat!(env!(\"CARGO_TARGET_TMPDIR\"), \"/new\"), \"\").unwrap();\n\
         let output = Command::new(env!(\"CARGO_BIN_EXE_member\")).output().unwrap();\n\
         assert_eq!(output.stdout, b\"a program\\n\");\n}\n",
    );
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline", "--target-dir", "target"]).current_dir(place.path());
    let runner = format!("{} runner linux-uml", VM);
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    let Outcome { status, stdout, stderr } = outcome(&mut cargo);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("test files ... ok"), "{stdout}");
}

/// The tracer's program, its interpreter and its libraries are found as `exec` finds them.
#[test]
fn a_traced_program_stays_where_it_is() {
    let place = Place::for_programs();
    place.program("bin/tool", "OWN", &[]);
    place.write("share/data", "beside\n");
    let own = place.file("bin/tool");
    let mut command = vm(&["trace", "linux-uml", "--quiet", "--carry", "share", "--"]);
    command.args([&own, "../share/data"]).current_dir(place.path());
    let Outcome { status, stdout, stderr } = outcome(&mut command);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.starts_with(&format!("{own}\n{own}\nbeside\n")), "{stdout}{stderr}");
}

/// Each limit has its usual error, and the cure of `--help` lifts it.
#[test]
fn what_runs_out_says_so_and_has_a_cure() {
    let programs = ["/bin/cat", "/bin/dd"];
    let carried: Vec<_> = programs.iter().flat_map(|name| ["--carry", *name]).collect();
    let sh = |options: &[&str], text: &str| {
        outcome(&mut exec(&[&carried, options].concat(), &["/bin/sh", "-c", text]))
    };
    for place in ["", "/tmp", "/dev/shm", "/run"] {
        let fill = format!("dd if=/dev/zero of={place}/file bs=1M count=150");
        let said = sh(&[], &fill);
        assert_eq!(said.status, Some(1), "{place}: {}", said.stderr);
        assert!(said.stderr.contains("No space left on device"), "{place}: {}", said.stderr);
        let said = sh(&["--memory", "512"], &fill);
        assert_eq!(said.status, Some(0), "{place}: {}", said.stderr);
    }
    let most = |options: &[&str]| -> u32 {
        let said = sh(options, "cat /proc/sys/kernel/threads-max");
        said.stdout.trim().parse().expect("a number")
    };
    assert!(most(&["--memory", "512"]) > most(&[]));
    let open = "exec 3</ && for n in 4 5 6 7 8 9; do eval \"exec $n</\" || exit 9; done";
    let said = sh(&[], &format!("ulimit -n; ulimit -n 7; {open}"));
    assert_eq!((said.status, said.stdout.as_str()), (Some(2), "1024\n"), "{}", said.stderr);
    assert!(said.stderr.contains("Too many open files"), "{}", said.stderr);
    assert_eq!(sh(&[], &format!("ulimit -n 524288; {open}")).status, Some(0));
    let said = sh(&[], "(ulimit -u 1; ulimit -n 4; cat </dev/null | cat); ulimit -l unlimited");
    assert_eq!(said.status, Some(0), "{}", said.stderr);
}

/// Each fragment makes a kernel that can do what it is for. All of them and a user's file are one
/// kernel, which takes minutes to build.
#[cfg(feature = "variant-tests")]
#[test]
fn kernels_with_more_options_can_do_more() {
    let place = Place::for_programs();
    let own = place.file("own.config");
    place.write("own.config", "CONFIG_TMPFS_QUOTA=y\n");
    place.program("fuse", "FUSE", &[]);
    place.program("bpf", "BPF", &[]);
    let (fuse, bpf) = (place.file("fuse"), place.file("bpf"));
    let configs = ["bpf", "bridge", "cgroup", "coredump", "fuse", "loop", "overlay", &own];
    let programs = "cat dd grep gzip ip losetup ls mkdir mkfs.ext4 mount zcat";
    let found = |name| ["/bin", "/sbin"].map(|directory| format!("{directory}/{name}"));
    let programs = programs.split(' ').flat_map(found).filter(|path| Path::new(path).exists());
    let carried: Vec<_> = programs.chain([fuse.clone(), bpf.clone()]).collect();
    let options: Vec<_> = configs.iter().flat_map(|name| ["--config", *name]).collect();
    let carried = carried.iter().flat_map(|path| ["--carry", path.as_str()]);
    let options: Vec<_> = options.into_iter().chain(carried).collect();
    let text = "set -e
        zcat /proc/config.gz | grep CONFIG_TMPFS_QUOTA=y
        mkdir /sys/fs/cgroup/new; echo $$ >/sys/fs/cgroup/new/cgroup.procs
        echo +memory +pids +cpu >/sys/fs/cgroup/cgroup.subtree_control
        cat /proc/self/cgroup; ls /sys/fs/cgroup/new/memory.max
        mkdir /l /o; mount -t tmpfs none /o; mkdir /o/u /o/w /o/m; echo low >/l/file
        mount -t overlay -o lowerdir=/l,upperdir=/o/u,workdir=/o/w none /o/m
        echo high >/o/m/file; cat /l/file /o/u/file
        dd if=/dev/zero of=/disk bs=1M count=4 2>/dev/null; mkfs.ext4 -q /disk
        mkdir /d; mount -o loop /disk /d; echo loop >/d/file; cat /d/file
        ip link add one type veth peer name two; ip link add bridge0 type bridge
        ip link set one master bridge0; ls /sys/class/net/bridge0/brif
        cd /tmp; ulimit -c unlimited; sh -c 'kill -SEGV $$' 2>/dev/null || ls core*
        dd if=/sys/kernel/btf/vmlinux bs=2 count=1 2>/dev/null | grep -c .
        $0 && echo fuse; $1 && echo bpf";
    let said = outcome(&mut exec(&options, &["/bin/sh", "-c", text, &fuse, &bpf]));
    let expected = "CONFIG_TMPFS_QUOTA=y\n0::/new\n/sys/fs/cgroup/new/memory.max\nlow\nhigh\nloop\n\
                    one\ncore\n1\nfuse\nbpf\n";
    assert_eq!((said.stdout.as_str(), said.stderr.as_str(), said.status), (expected, "", Some(0)));
}
