//! The whole fuzzer on the fake kernel.

use kcov::Comparison;
use kcov::fake::Kernel;
use kcov_libafl::{Calls, Fuzz, Param};
use libafl::executors::ExitKind;
use std::fs;
use std::path::Path;

const MAGIC: u64 = 0x5eed_f00d;

/// Reaches 0x10, and 0x20 if the input begins with the magic number; then 0xff crashes.
fn parser(kernel: &Kernel) -> impl FnMut(&[u8]) -> ExitKind + use<> {
    let kernel = kernel.clone();
    move |input| {
        let crashes = kernel.call(|trace| {
            trace.pc(0x10);
            let head = input.first_chunk().map(|head| u64::from(u32::from_le_bytes(*head)));
            trace.comparison(Comparison::from_words([5, MAGIC, head.unwrap_or(0), 0x1000]));
            if head != Some(MAGIC) {
                return false;
            }
            trace.pc(0x20);
            input.get(4) == Some(&0xff)
        });
        if crashes { ExitKind::Crash } else { ExitKind::Ok }
    }
}

fn fuzz(kernel: &Kernel, directory: &Path) -> Fuzz {
    let (corpus, crashes) = (directory.join("corpus"), directory.join("crashes"));
    Fuzz::new().builder(kernel.builder()).corpus(corpus).crashes(crashes)
}

fn files(directory: &Path) -> Vec<Vec<u8>> {
    let files = fs::read_dir(directory).unwrap();
    files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn a_magic_number_and_a_crash_are_found_and_saved() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = Kernel::linux();
    let fuzz = fuzz(&kernel, directory.path());
    let found = fuzz.clone().executions(40_000).bytes(&[b"abcdefgh"], parser(&kernel)).unwrap();
    assert_eq!((found.inputs, found.pcs, found.crashes), (2, 2, 1));
    assert!((40_000..45_000).contains(&found.executions));
    let corpus = files(&directory.path().join("corpus"));
    assert!(corpus.len() == 2 && corpus.contains(&b"abcdefgh".to_vec()), "{corpus:?}");
    let crashes = files(&directory.path().join("crashes"));
    assert_eq!(crashes[0][..5], [0x0d, 0xf0, 0xed, 0x5e, 0xff]);

    // It goes on from the saved inputs, without the seed and without comparisons.
    let again = fuzz.executions(1).comparisons(false).bytes(&[], parser(&kernel)).unwrap();
    assert_eq!(again.pcs, 2);
}

#[test]
fn without_comparisons_the_number_is_not_found() {
    for kernel in [Kernel::linux().without_comparisons(), Kernel::linux()] {
        let directory = tempfile::tempdir().unwrap();
        let fuzz = fuzz(&kernel, directory.path()).executions(10_000).comparisons(false);
        let found = fuzz.bytes(&[b"abcdefgh"], parser(&kernel)).unwrap();
        assert_eq!(found.pcs, 1);
    }
    let directory = tempfile::tempdir().unwrap();
    let kernel = Kernel::linux().without_comparisons();
    let fuzz = fuzz(&kernel, directory.path()).executions(100);
    assert_eq!(fuzz.bytes(&[b"abcdefgh"], parser(&kernel)).unwrap().pcs, 1);
}

#[test]
fn a_harness_that_reaches_nothing_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = fuzz(&Kernel::linux(), directory.path()).bytes(&[b"a"], |_| ExitKind::Ok);
    assert!(error.unwrap_err().to_string().contains("no input to start from"));
}

#[test]
fn programs_are_found_and_saved() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = Kernel::linux();
    let reached = kernel.clone();
    let calls = Calls::new().call("call", &[Param::Number], move |a| {
        reached.call(|trace| {
            trace.comparison(Comparison::from_words([5, MAGIC, a[0] & 0xffff_ffff, 0x1000]));
            trace.pc(if a[0] as u32 == MAGIC as u32 { 0x20 } else { 0x10 });
        });
        0
    });
    let fuzz = fuzz(&kernel, directory.path());
    let found = fuzz.clone().executions(20_000).calls(&calls, 4).unwrap();
    assert_eq!((found.inputs, found.pcs), (2, 2));
    let again = fuzz.clone().executions(1).calls(&calls, 4).unwrap();
    assert_eq!(again.pcs, 2);

    // A program as text, beside the corpus and in it.
    let file = directory.path().join("magic.txt");
    fs::write(&file, format!("# {MAGIC}\ncall(1)\ncall({MAGIC:#x})\n")).unwrap();
    let replayed = fuzz.clone().replay(&file).calls(&calls, 4).unwrap();
    assert_eq!((replayed.executions, replayed.inputs), (2, 0));
    let corpus = directory.path().join("other");
    fs::create_dir(&corpus).unwrap();
    fs::copy(&file, corpus.join("magic.txt")).unwrap();
    let fuzz = fuzz.corpus(&corpus).executions(1).comparisons(false);
    assert_eq!(fuzz.clone().calls(&calls, 4).unwrap().pcs, 2);
    fs::write(corpus.join("wrong.txt"), "call()\n").unwrap();
    let error = fuzz.calls(&calls, 4).unwrap_err().to_string();
    assert!(error.contains("wrong.txt: ") && error.contains("line 1: "), "{error}");
}

#[test]
fn tokens_and_a_mutation_of_the_harness_reach_what_chance_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = Kernel::linux();
    let fuzz = || fuzz(&kernel, directory.path()).executions(20_000).comparisons(false);
    let magic = (MAGIC as u32).to_le_bytes();
    let found = fuzz().feedback(false).tokens(&[&magic]).bytes(&[b"abcdefgh"], parser(&kernel));
    assert_eq!(found.unwrap().pcs, 2);
    let mutation = |input: &mut Vec<u8>, random: u64| {
        input.splice(..0, (MAGIC as u32).to_le_bytes());
        input.truncate(4 + random as usize % 4);
    };
    let found = fuzz().feedback(false).mutation(mutation).bytes(&[b"abcdefgh"], parser(&kernel));
    assert_eq!(found.unwrap().pcs, 2);
}
