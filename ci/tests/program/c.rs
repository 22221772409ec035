//! Programs and libraries in C, compiled in a directory of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints its word for itself, its path, and a file beside its directory.
pub const OWN: &str = r#"
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char own[4096], path[8192], line[100];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (argc < 2 || length < 0) return 1;
    own[length] = 0;
    printf("%s\n%s\n", argv[0], own);
    snprintf(path, sizeof path, "%s/%s", dirname(own), argv[1]);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) return perror(path), 2;
    fputs(line, stdout);
    return 0;
}"#;

/// Prints the status of `system("exit 4")`.
pub const SYSTEM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(void) {
    printf("%d\n", WEXITSTATUS(system("exit 4")));
    return 0;
}"#;

/// Prints what its libraries say, and runs another program.
pub const NAMED: &str = r#"
#include <stdio.h>
#include <unistd.h>
const char *name(void);
int own(void);
int main(int argc, char **argv) {
    printf("%s %d\n", name(), own());
    fflush(stdout);
    if (argc > 1) return execv(argv[1], (char *[]){argv[1], 0});
    return 0;
}"#;

/// Prints what a library says that it opens.
pub const LOAD: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!library) return puts(dlerror()), 1;
    const char *(*name)(void) = dlsym(library, "name");
    return puts(name()) < 0;
}"#;

/// Cancels a thread.
pub const CANCEL: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *wait_for_it(void *unused) { return pause(), unused; }
int main(void) {
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, 0, wait_for_it, 0)) return 1;
    if (pthread_cancel(thread) || pthread_join(thread, &result)) return 2;
    return puts(result == PTHREAD_CANCELED ? "cancelled" : "not") < 0;
}"#;

/// Uses shared memory, a semaphore, a message queue and a pseudoterminal.
pub const POSIX: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#define MUST(it) if (!(it)) return perror(#it), 1
int main(void) {
    int shared = shm_open("/kcov-vm-test", O_CREAT | O_RDWR, 0600);
    MUST(shared >= 0 && ftruncate(shared, 4096) == 0);
    MUST(mmap(0, 4096, PROT_WRITE, MAP_SHARED, shared, 0) != MAP_FAILED);
    MUST(shm_unlink("/kcov-vm-test") == 0);
    sem_t *semaphore = sem_open("/kcov-vm-test", O_CREAT, 0600, 1);
    MUST(semaphore != SEM_FAILED && sem_wait(semaphore) == 0);
    MUST(sem_unlink("/kcov-vm-test") == 0);
    mqd_t queue = mq_open("/kcov-vm-test", O_CREAT | O_RDWR, 0600, 0);
    MUST(queue >= 0 && mq_send(queue, "x", 1, 0) == 0);
    MUST(mq_unlink("/kcov-vm-test") == 0);
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    MUST(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    MUST(other >= 0 && isatty(other));
    return puts("all work") < 0;
}"#;

/// Prints its effective user.
pub const WHO: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) { return printf("%d\n", (int)geteuid()) < 0; }"#;

/// A directory for files and programs.
pub struct Place {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    /// The directory is in the target directory, because programs may be forbidden elsewhere.
    pub fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let path = directory.path().canonicalize().expect("its path");
        Self { path, _directory: directory }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file, as text.
    pub fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().expect("UTF-8").into()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    /// A library without a name of its own, so that its file name counts.
    pub fn library(&self, name: &str, text: &str) {
        self.library_with(name, text, &[]);
    }

    pub fn library_with(&self, name: &str, text: &str, words: &[&str]) {
        let soname = format!("-Wl,-soname,{}", name.rsplit('/').next().unwrap_or(name));
        self.compile(name, text, &[&["-shared", "-fPIC", &soname], words].concat());
    }

    pub fn compile(&self, name: &str, text: &str, words: &[&str]) {
        let source = self.write(&format!("{name}.c"), text);
        let mut gcc = Command::new("gcc");
        gcc.args(["-Wall", "-Wl,--allow-shlib-undefined", "-o"]).arg(self.path().join(name));
        let output = gcc.arg(source).args(words).output().expect("gcc starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
