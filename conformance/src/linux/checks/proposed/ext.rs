//! Extended records: "KCOV function entry/exit records".

use super::*;
use kcov_sys::linux::proposed::{
    KCOV_RECORD_IP_MASK, KCOV_RECORDFLAG_TYPE_ENTRY, KCOV_RECORDFLAG_TYPE_EXIT,
    KCOV_RECORDFLAG_TYPE_NORMAL, KCOV_RECORDFLAG_TYPEMASK, KCOV_TRACE_PC_EXT,
};

fn extended(cx: &Context) -> Vec<u64> {
    in_mode(cx, KCOV_TRACE_PC_EXT)
}

fn kind(record: u64) -> u64 {
    record & KCOV_RECORDFLAG_TYPEMASK
}

/// The record's address. Its top byte is lost, and is restored by sign extension.
fn address(record: u64) -> u64 {
    let address = record & KCOV_RECORD_IP_MASK;
    if address >> 55 == 0 { address } else { address | !KCOV_RECORD_IP_MASK }
}

/// Requires that at least half of the traces pass, since an interrupt may add records to some.
fn usually(cx: &Context, passes: impl Fn(&[u64]) -> Result<(), String>) {
    const RUNS: usize = 20;
    let failed: Vec<_> = (0..RUNS).filter_map(|_| passes(&extended(cx)).err()).collect();
    assert!(failed.len() <= RUNS / 2, "in {} of {RUNS} runs: {}", failed.len(), failed[0]);
}

/// Calls `matched` with each entry and its exit. Fails on a record without a counterpart.
fn walk(records: &[u64], mut matched: impl FnMut(u64, u64)) -> Result<(), String> {
    let mut open = Vec::new();
    for &record in records {
        match kind(record) {
            KCOV_RECORDFLAG_TYPE_ENTRY => open.push(address(record)),
            KCOV_RECORDFLAG_TYPE_EXIT => match open.pop() {
                Some(entry) => matched(entry, address(record)),
                None => return Err(format!("exit {record:#x} of nothing that was entered")),
            },
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("entered and not left: {open:x?}")) }
}

pub(crate) const CHECKS: &[Check] = &[
    check("proposed.ext.records-have-types", |cx| {
        let records = extended(cx);
        let types =
            [KCOV_RECORDFLAG_TYPE_NORMAL, KCOV_RECORDFLAG_TYPE_ENTRY, KCOV_RECORDFLAG_TYPE_EXIT];
        for wanted in types {
            assert!(records.iter().any(|&record| kind(record) == wanted), "no record {wanted:#x}");
        }
        for record in records {
            assert!(types.contains(&kind(record)), "{record:#x}");
        }
    }),
    check("proposed.ext.plain-mode-has-the-same-blocks", |cx| {
        let blocks = |records: Vec<u64>| -> Vec<u64> {
            let exit = |record: &&u64| kind(**record) != KCOV_RECORDFLAG_TYPE_EXIT;
            records.iter().filter(exit).map(|&record| address(record)).collect()
        };
        Seen::in_runs(|| plain(cx)).assert_same(&Seen::in_runs(|| blocks(extended(cx))));
    }),
    check("proposed.ext.plain-mode-has-no-types", |cx| {
        pc::in_kernel_code(plain(cx));
        pc::in_kernel_code(extended(cx).into_iter().map(address));
    }),
    check("proposed.ext.entries-and-exits-balance", |cx| {
        usually(cx, |records| {
            let mut calls = 0;
            walk(records, |_, _| calls += 1)?;
            if calls < 2 { Err(format!("{calls} calls are too few to tell")) } else { Ok(()) }
        });
    }),
    check("proposed.ext.exit-is-of-the-function-entered", |cx| {
        let symbols = symbols();
        usually(cx, |records| {
            let mut wrong = Vec::new();
            let mut calls = 0;
            walk(records, |entry, exit| {
                calls += 1;
                if symbols.names(entry) != symbols.names(exit) {
                    wrong.push((symbols.names(entry), symbols.names(exit)));
                }
            })?;
            if wrong.is_empty() && calls > 1 { Ok(()) } else { Err(format!("{calls}, {wrong:?}")) }
        });
    }),
    check("proposed.ext.one-word-per-record", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC_EXT);
        mark_from(&map, 0);
        call();
        device.disable().expect("disabled");
        let count = crate::checks::setup::index(map.count());
        assert!(count > 0);
        let written = (1..map.words()).take_while(|&word| !is_sentinel(&map.load(word))).count();
        assert_eq!(written, count);

        let (_device, map) = enabled_page(cx, KCOV_TRACE_PC_EXT);
        (0..1000).for_each(|_| call());
        assert_eq!(map.count(), page_words() - 1, "a full buffer stays full");
    }),
    on_device("proposed.ext.remote-takes-the-mode", usual, |_, device| {
        let remote = Remote { mode: KCOV_TRACE_PC_EXT, ..Remote::common(remote::common()) };
        assert_eq!(device.remote_enable(&remote), Ok(()));
        assert_eq!(device.disable(), Ok(()));
    }),
    on_device("proposed.ext.other-modes-are-refused", usual, |cx, device| {
        for mode in [3, 4, 6, 8, 1 << 29, u32::MAX] {
            cx.refused(device.enable(mode));
        }
        cx.refused(device.enable(1_u64 << 32 | u64::from(KCOV_TRACE_PC_EXT)));
    }),
    on_device("proposed.ext.not-built-is-refused", usual, |cx, device| {
        cx.refused(device.enable(KCOV_TRACE_PC_EXT));
        device.enable(KCOV_TRACE_PC).expect("the others work");
    }),
];
