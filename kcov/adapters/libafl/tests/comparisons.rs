//! Comparisons of the fake kernel solve magic values through LibAFL's input-to-state mutator.

mod support;

use kcov::Comparison;
use kcov::fake::{Kernel, Recorder};
use kcov_libafl::{ComparisonStage, FollowStage, InProcess, NoveltyFeedback, SignalObserver};
use kcov_signal::Ranges;
use libafl::HasMetadata;
use libafl::corpus::Corpus;
use libafl::executors::ExitKind;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::mutators::{HavocScheduledMutator, I2SRandReplace, Tokens};
use libafl::observers::{CmpValues, CmpValuesMetadata};
use libafl::stages::StdMutationalStage;
use libafl::state::HasCorpus;
use libafl_bolts::tuples::tuple_list;
use std::collections::HashSet;
use support::{Fuzzer, bytes};

/// A field of the input that the kernel compares.
struct Field {
    at: usize,
    size: usize,
    big: bool,
    magic: u64,
    constant: bool,
}

const fn field(at: usize, size: usize, big: bool, magic: u64) -> Field {
    Field { at, size, big, magic, constant: true }
}

const FIELDS: [Field; 8] = [
    field(0, 1, false, 0xa7),
    field(1, 2, false, 0xbeef),
    field(3, 2, true, 0xcafe),
    field(5, 4, false, 0xdead_10cc),
    field(9, 4, true, 0x8bad_f00d),
    field(13, 8, false, 0x0123_4567_89ab_cdef),
    field(21, 8, true, 0xfedc_ba98_7654_3210),
    Field { constant: false, ..field(29, 4, true, 0x1bad_b002) },
];

/// Where the fields hold nothing of each other.
const SEED: &[u8; 33] = b"abcdefghijklmnopqrstuvwxyz@#$%&*!";

impl Field {
    fn value(&self, input: &[u8]) -> Option<u64> {
        let bytes = input.get(self.at..self.at + self.size)?.iter();
        let number = |number, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big { bytes.fold(0, number) } else { bytes.rev().fold(0, number) })
    }

    /// A record as the compiler's hooks make it: the constant comes first.
    fn compare(&self, value: u64, trace: &mut Recorder) {
        let kind = u64::from(self.size.ilog2()) << 1 | u64::from(self.constant);
        trace.comparison(Comparison::from_words([kind, self.magic, value, 0x1000]));
    }
}

/// Goes on to the next field where one has its magic value.
fn parser(kernel: &Kernel) -> impl FnMut(&BytesInput) -> ExitKind + use<> {
    let kernel = kernel.clone();
    move |input| {
        kernel.call(|trace| {
            for (passed, field) in FIELDS.iter().enumerate() {
                trace.pc(0x2000 + passed as u64);
                let Some(value) = field.value(input.mutator_bytes()) else { break };
                field.compare(value, trace);
                if value != field.magic {
                    break;
                }
            }
        });
        ExitKind::Ok
    }
}

/// How many fields are found, with and without the stage, and the fuzzer that found them.
fn solve(with_comparisons: bool) -> (usize, Fuzzer<BytesInput>) {
    let kernel = Kernel::linux();
    let observer = SignalObserver::new("pcs");
    let mut fuzzer = Fuzzer::new(NoveltyFeedback::new(&observer, Ranges::default()));
    let device = kernel.builder().open().unwrap();
    let mut executor = InProcess::new(device, observer, parser(&kernel)).unwrap();
    assert!(fuzzer.is_new(&mut executor, bytes(SEED)));
    let mutator = HavocScheduledMutator::new(tuple_list!(I2SRandReplace::new()));
    let mutate = StdMutationalStage::new(mutator);
    if with_comparisons {
        let mut stages = tuple_list!(ComparisonStage::new(), mutate);
        fuzzer.fuzz(&mut executor, &mut stages, FIELDS.len(), 400);
    } else {
        fuzzer.fuzz(&mut executor, &mut tuple_list!(mutate), FIELDS.len(), 400);
    }
    (fuzzer.state.corpus().count(), fuzzer)
}

#[test]
fn magic_values_of_all_widths_and_orders_are_found() {
    let (found, _) = solve(true);
    assert_eq!(found, FIELDS.len());
    assert_eq!(solve(false).0, 1, "it takes comparisons");
}

/// Compares a word letter by letter, then a checksum, then a byte that the checksum covers. The whole
/// word, the right checksum and the right byte each reach a new PC; nothing else does.
fn word_and_checksum(kernel: &Kernel) -> impl FnMut(&BytesInput) -> ExitKind + use<> {
    let kernel = kernel.clone();
    move |input| {
        let equal = |trace: &mut Recorder, own: u64, other: u64| {
            trace.comparison(Comparison::from_words([0, own, other, 0x1000]));
            own == other
        };
        kernel.call(|trace| {
            trace.pc(0x2000);
            let bytes = input.mutator_bytes();
            let mut letters = b"sesame".iter().zip(bytes);
            if !letters.all(|(letter, byte)| equal(trace, (*letter).into(), (*byte).into())) {
                return;
            }
            trace.pc(0x2001);
            let sum = bytes[7..].iter().fold(7_u8, |sum, byte| sum.rotate_left(1) ^ byte);
            if !equal(trace, sum.into(), bytes[6].into()) {
                return;
            }
            trace.pc(0x2002);
            if equal(trace, 0xf1, bytes[8].into()) {
                trace.pc(0x2003);
            }
        });
        ExitKind::Ok
    }
}

/// Follows comparisons from a seed for this many rounds, or until the corpus has this many entries,
/// and returns their number.
fn follow(seed: &[u8], entries: usize, rounds: usize) -> usize {
    let kernel = Kernel::linux();
    let observer = SignalObserver::new("pcs");
    let mut fuzzer = Fuzzer::new(NoveltyFeedback::new(&observer, Ranges::default()));
    let device = kernel.builder().open().unwrap();
    let harness = word_and_checksum(&kernel);
    let mut executor = InProcess::new(device, observer, harness).unwrap();
    assert!(fuzzer.is_new(&mut executor, bytes(seed)));
    fuzzer.fuzz(&mut executor, &mut tuple_list!(FollowStage::new()), entries, rounds);
    fuzzer.state.corpus().count()
}

#[test]
fn comparisons_that_come_one_after_the_other_are_followed() {
    assert_eq!(follow(b"abcdefghijkl", 4, 400), 4);
}

#[test]
fn bytes_that_are_all_alike_are_made_different() {
    assert!(follow(&[0; 64], 2, 64) >= 2, "the word is found");
}

#[test]
fn constants_become_tokens_in_both_orders() {
    let (_, fuzzer) = solve(true);
    let tokens: HashSet<_> = fuzzer.state.metadata::<Tokens>().unwrap().iter().cloned().collect();
    for field in FIELDS.iter().take(FIELDS.len() - 1) {
        let little = field.magic.to_le_bytes()[..field.size].to_vec();
        let big: Vec<_> = little.iter().rev().copied().collect();
        assert!(tokens.contains(&little) && tokens.contains(&big), "{:#x}", field.magic);
    }
    let variable = 0x1bad_b002_u32.to_be_bytes();
    assert!(!tokens.contains(&variable[..]), "both operands are variables");
}

/// The values that an input leaves for the mutators, if the kernel makes these comparisons.
fn values(input: &[u8], records: &'static [[u64; 3]]) -> Vec<CmpValues> {
    let kernel = Kernel::linux();
    let observer = SignalObserver::new("pcs");
    let mut fuzzer = Fuzzer::new(NoveltyFeedback::new(&observer, Ranges::default()));
    let device = kernel.builder().open().unwrap();
    let harness = |_: &BytesInput| {
        kernel.call(|trace| {
            trace.pc(1);
            for [kind, first, second] in records {
                trace.comparison(Comparison::from_words([*kind, *first, *second, 0x1000]));
            }
        });
        ExitKind::Ok
    };
    let mut executor = InProcess::new(device, observer, harness).unwrap();
    assert!(fuzzer.is_new(&mut executor, bytes(input)));
    fuzzer.fuzz(&mut executor, &mut tuple_list!(ComparisonStage::new()), 2, 1);
    let values = fuzzer.state.metadata::<CmpValuesMetadata>().unwrap();
    values.list.clone()
}

#[test]
fn values_keep_width_and_flag_and_come_in_smaller_widths() {
    let all = values(b"\x07\0\0\0", &[[5, 0xffff_fffe, 7]]);
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all.contains(&CmpValues::U32((0xffff_fffe, 7, true))), "{all:?}");
    assert!(all.contains(&CmpValues::U16((0xfffe, 7, true))), "{all:?}");
    assert!(all.contains(&CmpValues::U8((0xfe, 7, true))), "{all:?}");
    // Neither is constant, so the input may hold the first.
    let all = values(b"\x12\x34", &[[2, 0x1234, 0x5678]]);
    assert_eq!(all, [CmpValues::U16((0x1234, 0x5678, false))]);
}

#[test]
fn values_that_cannot_come_from_the_input_are_left_out() {
    // Equal operands; operands that the input lacks; a constant that the input has.
    const RECORDS: &[[u64; 3]] = &[[3, 0x6162, 0x6162], [3, 0x1111, 0x2222], [3, 0x6162, 0x3333]];
    assert_eq!(values(b"ab", RECORDS), []);
}
