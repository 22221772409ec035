//! Sequences of calls: what runs, what mutation and minimization make of them.

mod support;

use kcov::fake::Kernel;
use kcov_libafl::{
    Calls, Generate, InProcess, MinimizeStage, NoveltyFeedback, Param, Program, Resource,
    SignalObserver,
};
use kcov_signal::Ranges;
use libafl::corpus::{Corpus, CorpusId, InMemoryCorpus};
use libafl::executors::ExitKind;
use libafl::generators::Generator;
use libafl::mutators::{HavocScheduledMutator, MutationResult, Mutator};
use libafl::observers::{CmpValues, CmpValuesMetadata};
use libafl::state::{HasCorpus, NopState, StdState};
use libafl::{HasMetadata, inputs::Input};
use libafl_bolts::HasLen;
use libafl_bolts::rands::StdRand;
use libafl_bolts::tuples::tuple_list;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use support::Fuzzer;

thread_local! {
    /// What the calls of this test saw.
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn log(text: String) {
    LOG.with_borrow_mut(|log| log.push(text));
}

fn take_log() -> Vec<String> {
    LOG.take()
}

static FILE: Resource = Resource::new("file", |file| log(format!("release {file}")));
static LOCK: Resource = Resource::new("lock", |lock| log(format!("unlock {lock}")));

/// The result of `lock`, unlike any file's.
const LOCKED: i64 = 1_000_000;

/// What a call sees of memory.
fn memory(address: u64, length: u64) -> Vec<u8> {
    let address = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the address and length are those of an argument of bytes, which lives as long as the
    // program runs.
    unsafe { std::slice::from_raw_parts(address, length as usize) }.to_vec()
}

/// Calls with all kinds of parameters. `open` returns 10, 11 and so on; `refuse` fails.
fn calls() -> Calls {
    let opened = Rc::new(RefCell::new(10));
    let again = Rc::clone(&opened);
    Calls::new()
        .returning(&FILE, "open", &[Param::OneOf(&[3, 4])], move |a| {
            log(format!("open {:#x}", a[0]));
            opened.replace_with(|next| *next + 1)
        })
        .returning(&LOCK, "lock", &[Param::Result(&FILE)], |a| {
            log(format!("lock {}", a[0] as i64));
            LOCKED
        })
        .call("write", &[Param::Result(&FILE), Param::Bytes(16), Param::Length], |a| {
            assert!(a[1].is_multiple_of(8));
            log(format!("write {} {:?}", a[0] as i64, memory(a[1], a[2])));
            // The room after the content is the call's.
            assert_eq!(memory(a[1] + a[2], 16 - a[2]), vec![0; 16 - a[2] as usize]);
            0
        })
        .returning(&FILE, "refuse", &[Param::Flags(&[1, 2, 4]), Param::Number], move |_| {
            again.replace(10);
            -13
        })
}

/// A program from its saved form: calls with a number and arguments.
fn program(calls: &str) -> Program {
    serde_json::from_str(&format!("{{\"calls\":[{calls}]}}")).unwrap()
}

fn call(number: usize, arguments: &str) -> String {
    format!("{{\"number\":{number},\"arguments\":[{arguments}]}}")
}

const OPEN: &str = r#"{"number":0,"arguments":[{"Number":3}]}"#;

#[test]
fn results_are_arguments_and_are_released_in_reverse() {
    let calls = calls();
    let bytes = r#"{"Result":1},{"Bytes":[1,2,3]},"Length""#;
    let lock = call(1, r#"{"Result":0}"#);
    let all = [OPEN, OPEN, &lock, &call(2, bytes), &call(3, r#"{"Number":1},{"Number":2}"#)];
    calls.run(&program(&all.join(",")));
    let expected = [
        "open 0x3",
        "open 0x3",
        "lock 10",
        "write 11 [1, 2, 3]",
        "unlock 1000000",
        "release 11",
        "release 10",
    ];
    assert_eq!(take_log(), expected);
    let text = "r0 = open(0x3)\nr1 = open(0x3)\nr2 = lock(r0)\nwrite(r1, \"010203\", length)\n\
                r4 = refuse(0x1, 0x2)\n";
    assert_eq!(calls.text(&program(&all.join(","))), text);
}

#[test]
fn a_result_that_is_missing_is_minus_one() {
    let calls = calls();
    calls.run(&program(&call(1, r#"{"Result":null}"#)));
    // A later call, which only a damaged file names.
    calls.run(&program(&call(1, r#"{"Result":7}"#)));
    // A failed call's own result is passed on.
    let failed = call(3, r#"{"Number":0},{"Number":0}"#);
    calls.run(&program(&format!("{failed},{}", call(1, r#"{"Result":0}"#))));
    let log = take_log();
    let locks: Vec<_> = log.iter().filter(|line| line.starts_with("lock")).collect();
    assert_eq!(locks, ["lock -1", "lock -1", "lock -13"]);
}

#[test]
fn calls_that_do_not_fit_are_not_made() {
    let calls = calls();
    let numbers = call(2, r#"{"Result":null},{"Number":4096},{"Number":8}"#);
    let few = call(2, r#"{"Result":null}"#);
    let long =
        call(2, r#"{"Result":null},{"Bytes":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]},"Length""#);
    let full =
        call(2, r#"{"Result":null},{"Bytes":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]},"Length""#);
    for unfit in [numbers, few, long, call(9, "")] {
        calls.run(&program(&format!("{unfit},{OPEN}")));
        assert_eq!(take_log().len(), 2, "{unfit}: only the file is opened and released");
    }
    calls.run(&program(&full));
    assert_eq!(take_log().len(), 1);
}

/// A state with a corpus of one program.
fn state(
    entry: Program,
) -> StdState<InMemoryCorpus<Program>, Program, StdRand, InMemoryCorpus<Program>> {
    let (corpus, none) = (InMemoryCorpus::new(), InMemoryCorpus::new());
    let rand = StdRand::with_seed(3);
    let mut state = StdState::new(rand, corpus, none, &mut (), &mut ()).unwrap();
    state.corpus_mut().add(entry.into()).unwrap();
    state
}

/// Runs a program and checks what each program keeps: results are those of the right resource.
fn check(calls: &Calls, program: &Program) {
    calls.run(program);
    for line in take_log() {
        let argument = line.split(' ').nth(1).unwrap().parse::<i64>();
        if let (Some("lock" | "write"), Ok(file)) = (line.split(' ').next(), argument) {
            assert!(file < LOCKED, "{line}: a lock is no file\n{}", calls.text(program));
        }
    }
}

#[test]
fn generated_programs_make_what_they_take() {
    let calls = calls();
    let mut state = NopState::<Program>::new();
    let (mut taken, mut made) = (0, 0);
    for _ in 0..200 {
        let program = Generate::new(&calls, 6).generate(&mut state).unwrap();
        assert!((1..=6 + 2).contains(&program.len()), "{}", calls.text(&program));
        check(&calls, &program);
        let text = calls.text(&program);
        taken += text.matches("lock(").count() + text.matches("write(").count();
        made += text.matches("lock(r").count() + text.matches("write(r").count();
    }
    assert!(taken > 100 && made == taken, "{made} of {taken}");
}

#[test]
fn mutations_change_programs_and_keep_them_right() {
    let calls = calls();
    let mut state = state(program(&format!("{OPEN},{}", call(1, r#"{"Result":0}"#))));
    let mut mutator = HavocScheduledMutator::new(tuple_list!(calls.mutation(8)));
    let (mut longer, mut shorter, mut other) = (0, 0, 0);
    let mut program = state.corpus().cloned_input_for_id(CorpusId(0)).unwrap();
    for _ in 0..2000 {
        let before = program.clone();
        if mutator.mutate(&mut state, &mut program).unwrap() == MutationResult::Mutated {
            longer += usize::from(program.len() > before.len());
            shorter += usize::from(program.len() < before.len());
            other += usize::from(program.len() == before.len() && program != before);
        }
        // An insertion brings what its call takes.
        assert!(program.len() <= 8 + 2, "{}", calls.text(&program));
        check(&calls, &program);
    }
    assert!(longer > 100 && shorter > 100 && other > 100, "{longer} {shorter} {other}");
}

#[test]
fn operands_replace_numbers_and_bytes() {
    let calls = calls();
    let start = format!(
        "{},{}",
        call(3, r#"{"Number":1},{"Number":305419896}"#),
        call(2, r#"{"Result":null},{"Bytes":[0,18,52,86,120,0]},"Length""#)
    );
    let mut state = state(program(&start));
    // The constant stands first. The number holds 0x12345678, the bytes hold it the other way round.
    let list = vec![CmpValues::U32((0xcafe_f00d, 0x1234_5678, true))];
    state.add_metadata(CmpValuesMetadata { list });
    let mut found = [false; 2];
    let mut mutation = calls.mutation(8);
    for _ in 0..2000 {
        let mut changed = program(&start);
        mutation.mutate(&mut state, &mut changed).unwrap();
        let text = calls.text(&changed);
        found[0] |= text.contains("refuse(0x1, 0xcafef00d)");
        found[1] |= text.contains("\"00cafef00d00\"");
    }
    assert_eq!(found, [true; 2]);
}

#[test]
fn minimization_keeps_the_calls_that_reach_the_new_pcs() {
    let kernel = Kernel::linux();
    let reached = kernel.clone();
    // `lock` reaches its PC only with a file, and each run reaches one that no other does.
    let runs = Cell::new(0x1000);
    let calls = Calls::new()
        .returning(&FILE, "open", &[Param::Number], |_| 3)
        .call("lock", &[Param::Result(&FILE)], move |a| {
            reached.call(|trace| {
                runs.set(runs.get() + 1);
                trace.pc(if a[0] == 3 { 0x30 } else { 0x20 });
                trace.pc(runs.get());
            });
            0
        })
        .call("nothing", &[], |_| 0);
    let observer = SignalObserver::new("pcs");
    let feedback = NoveltyFeedback::new(&observer, Ranges::default());
    let mut stages = tuple_list!(MinimizeStage::new(&observer));
    let device = kernel.builder().open().unwrap();
    let harness = |program: &Program| {
        calls.run(program);
        ExitKind::Ok
    };
    let mut executor = InProcess::new(device, observer, harness).unwrap();
    let mut fuzzer = Fuzzer::new(feedback);
    let nothing = call(2, "");
    let all = [&nothing, OPEN, &nothing, OPEN, &call(1, r#"{"Result":3}"#), &nothing];
    let all: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    assert!(fuzzer.is_new(&mut executor, program(&all.join(","))));
    fuzzer.fuzz(&mut executor, &mut stages, 2, 1);
    let entry = fuzzer.state.corpus().cloned_input_for_id(CorpusId(0)).unwrap();
    assert_eq!(calls.text(&entry), "r0 = open(0x3)\nlock(r0)\n");
}

#[test]
fn saved_programs_are_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let calls = calls();
    let mut state = NopState::<Program>::new();
    let program = Generate::new(&calls, 6).generate(&mut state).unwrap();
    program.to_file(directory.path().join("program")).unwrap();
    assert_eq!(Program::from_file(directory.path().join("program")).unwrap(), program);
}
