//! Operands and replacements for mutators.

use kcov::{Comparison, Pc};
use kcov_signal::{CmpFilter, Dictionary, Operands, Replacement};
use proptest::prelude::*;

fn comparison(kind: u64, first: u64, second: u64) -> Comparison {
    Comparison::from_words([kind, first, second, 0xffff_ffff_8100_0000])
}

#[test]
fn operands_are_cut_and_extended_by_size() {
    // A case value of -2 in a switch over a byte, recorded sign-extended.
    let operands = Operands::new(comparison(1, u64::MAX - 1, 0x7f));
    assert_eq!((operands.unsigned(), operands.signed()), ((0xfe, 0x7f), (-2, 0x7f)));
    assert_eq!((operands.size(), operands.is_const()), (1, true));
    let operands = Operands::new(comparison(4, 0x8000_0000, 0x1_0000_0001));
    assert_eq!((operands.unsigned(), operands.signed()), ((1 << 31, 1), (i32::MIN.into(), 1)));
    let operands = Operands::new(comparison(6, u64::MAX, 5));
    assert_eq!((operands.unsigned(), operands.signed()), ((u64::MAX, 5), (-1, 5)));
}

#[test]
fn operands_keep_the_place_of_their_comparison() {
    let at = |pc| Operands::new(Comparison::from_words([3, 1, 2, pc]));
    assert_eq!(at(0xffff_ffff_8100_0000).pc(), Pc::new(0xffff_ffff_8100_0000));
    assert_ne!(at(1), at(2));
}

#[test]
fn each_kind_of_noise_is_left_out_by_its_option() {
    let records = [
        comparison(1, 7, 7),
        comparison(1, 0x1ff, 0xff),
        comparison(4, 0, 100),
        comparison(4, 100, 0),
        comparison(5, 3, 100),
        comparison(5, 0xffff_ffff, 100),
        comparison(7, 1000, 5),
        comparison(6, 1000, 5),
        comparison(5, 0, 100),
    ];
    let left = |filter: CmpFilter| {
        let left: Vec<Operands> = filter.of(records).collect();
        records.map(|record| left.contains(&Operands::new(record)))
    };
    let (t, f) = (true, false);
    assert_eq!(left(CmpFilter::new()), [t; 9]);
    assert_eq!(left(CmpFilter::new().skip_equal()), [f, f, t, t, t, t, t, t, t]);
    assert_eq!(left(CmpFilter::new().skip_zero()), [t, t, f, f, t, t, t, t, f]);
    assert_eq!(left(CmpFilter::new().skip_small(3)), [t, f, t, t, f, f, t, t, f]);
    let both = [CmpFilter::new().skip_small(3).skip_small(0), CmpFilter::new().skip_small(0)];
    assert_eq!(both.map(|filter| left(filter.skip_small(3))), [[t, f, t, t, f, f, t, t, f]; 2]);
    assert_eq!(left(CmpFilter::new().skip_small(0)), [t, t, t, t, t, t, t, t, f]);
    assert_eq!(left(CmpFilter::new().only_const()), [t, t, f, f, t, t, t, f, t]);
}

#[test]
fn a_dictionary_has_both_orders_of_bytes_and_a_limit() {
    let mut dictionary = Dictionary::new(4);
    let mut add =
        |kind, first, second| dictionary.add(Operands::new(comparison(kind, first, second)));
    assert!(add(3, 0x1234, 0x9999));
    assert!(!add(3, 0x1234, 0x8888));
    assert!(add(5, 0x0a0b_0c0d, 1));
    assert!(add(2, 0x7777, 0x1234), "one is new");
    assert!(add(1, 0x55, 0));
    assert!(!add(7, 1, 2));
    assert_eq!((dictionary.len(), dictionary.missed()), (4, 1));
    let tokens: Vec<Vec<u8>> = dictionary.tokens().map(|token| token.as_bytes().to_vec()).collect();
    let expected: [&[u8]; 6] = [
        &[0x55],
        &[0x34, 0x12],
        &[0x12, 0x34],
        &[0x77, 0x77],
        &[0x0d, 0x0c, 0x0b, 0x0a],
        &[0x0a, 0x0b, 0x0c, 0x0d],
    ];
    assert_eq!(tokens, expected);
}

#[test]
fn a_dictionary_may_have_any_limit() {
    let mut dictionary = Dictionary::new(usize::MAX);
    assert!(dictionary.add(Operands::new(comparison(3, 1, 2))));
    assert!(!Dictionary::new(0).add(Operands::new(comparison(3, 1, 2))));
}

/// The bytes to find and their replacements.
fn changes(kind: u64, first: u64, second: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes =
        |change: Replacement| (change.find.as_bytes().to_vec(), change.replace.as_bytes().to_vec());
    Operands::new(comparison(kind, first, second)).replacements().map(bytes).collect()
}

fn pair(find: &[u8], replace: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (find.to_vec(), replace.to_vec())
}

#[test]
fn only_a_variable_is_replaced_and_only_if_it_differs() {
    let both = [pair(&[7], &[5]), pair(&[5], &[7])];
    assert_eq!(changes(1, 5, 7), both[..1]);
    assert_eq!(changes(0, 5, 7), both);
    assert_eq!(changes(1, 7, 7), []);
    assert_eq!(changes(0, 0x107, 0x207), [], "equal in their size");
}

#[test]
fn replacements_have_both_orders_and_each_size_that_holds_both_operands() {
    assert_eq!(
        changes(7, 0x1234, 0x56),
        [
            pair(&[0x56, 0, 0, 0, 0, 0, 0, 0], &[0x34, 0x12, 0, 0, 0, 0, 0, 0]),
            pair(&[0, 0, 0, 0, 0, 0, 0, 0x56], &[0, 0, 0, 0, 0, 0, 0x12, 0x34]),
            pair(&[0x56, 0, 0, 0], &[0x34, 0x12, 0, 0]),
            pair(&[0, 0, 0, 0x56], &[0, 0, 0x12, 0x34]),
            pair(&[0x56, 0], &[0x34, 0x12]),
            pair(&[0, 0x56], &[0x12, 0x34]),
        ]
    );
    // Equal byte orders give one change.
    assert_eq!(changes(3, 0x1111, 0x2222), [pair(&[0x22, 0x22], &[0x11, 0x11])]);
}

#[test]
fn replacements_are_cut_where_the_kernel_has_extended_the_sign() {
    // -2 and 5 as 16-bit numbers, which may have been widened from bytes.
    assert_eq!(
        changes(3, 0xfffe, 5),
        [pair(&[5, 0], &[0xfe, 0xff]), pair(&[0, 5], &[0xff, 0xfe]), pair(&[5], &[0xfe])]
    );
    // 200 is not a signed byte, and -2 is not an unsigned one.
    assert_eq!(
        changes(3, 0xfffe, 200),
        [pair(&[200, 0], &[0xfe, 0xff]), pair(&[0, 200], &[0xff, 0xfe])]
    );
    // Both are unsigned bytes.
    assert_eq!(changes(3, 255, 200).len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// If an input holds one operand, in any size and order, a replacement makes it hold the other.
    #[test]
    fn replacing_makes_operands_equal(
        size in 0u32..4,
        field in 0u32..4,
        first in any::<u64>(),
        second in any::<u64>(),
        signed in any::<bool>(),
        big in any::<bool>(),
    ) {
        // The input's field was widened to the size of the comparison, or has that size.
        let (field, size) = (1 << field.min(size), 1 << size);
        let widen = |number: u64| {
            let unused = 64 - 8 * field;
            let cut = number << unused;
            if signed { (cut as i64 >> unused) as u64 } else { cut >> unused }
        };
        let (first, second) = (widen(first), widen(second));
        let bytes = |number: u64| {
            let bytes = number.to_le_bytes()[..field].to_vec();
            if big { bytes.into_iter().rev().collect() } else { bytes }
        };
        let kind = u64::from((size as u64).trailing_zeros()) << 1 | 1;
        let wanted = (bytes(second), bytes(first));
        prop_assert!(wanted.0 == wanted.1 || changes(kind, first, second).contains(&wanted));
    }
}
