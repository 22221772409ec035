//! Comparisons of each size, with values that the program chooses. What a system call compares is
//! up to the kernel, but has long been stable. The compiler determines the order of two variables.

use super::*;
use crate::system::checks::calls::{CONSTANT, compare_argument};
use kcov_sys::linux::{KCOV_CMP_CONST, kcov_cmp_size};
use std::ptr::null_mut;

/// Asserts that the call makes each of these comparisons, as this type.
#[track_caller]
pub(crate) fn shows(cx: &Context, kind: u64, wanted: &[(u64, u64)], traced: impl Fn()) {
    let found = collect(cx, traced);
    for &(first, second) in wanted {
        let same = |c: &Comparison| (c.kind, c.first, c.second) == (kind, first, second);
        assert!(found.iter().any(same), "no {kind}: {first:#x}, {second:#x} in {found:#x?}");
    }
}

/// The same for operands that the kernel compares nowhere else. No record may have them in the
/// other order or as another type.
#[track_caller]
pub(crate) fn shows_only(cx: &Context, kind: u64, (first, second): (u64, u64), traced: impl Fn()) {
    let of = |c: &Comparison| [c.first, c.second] == [first, second];
    let swapped = |c: &Comparison| [c.second, c.first] == [first, second];
    let found = collect(cx, traced).into_iter().filter(|c| of(c) || swapped(c));
    let found: Vec<_> = found.map(|c| (c.kind, c.first, c.second)).collect();
    assert!(!found.is_empty(), "{first:#x} is not compared with {second:#x}");
    assert!(found.iter().all(|c| *c == (kind, first, second)), "not only {kind}: {found:#x?}");
}

/// Asserts that the call makes one switch over this value, and that its comparisons are these
/// cases. All comparisons of a switch have one address.
#[track_caller]
pub(crate) fn shows_switch(cx: &Context, kind: u64, cases: &[u64], value: u64, traced: impl Fn()) {
    let mut found = collect(cx, traced);
    found.retain(|c| (c.kind, c.second) == (kind, value));
    let switch = found.iter().find(|c| c.first == cases[1]).map(|c| c.address);
    let of_switch = found.iter().filter(|c| Some(c.address) == switch);
    let recorded: BTreeSet<u64> = of_switch.map(|c| c.first).collect();
    assert!(recorded.iter().eq(cases), "of the cases {cases:#x?}: {found:#x?}");
}

/// The check of programs whose `long` has 64 bits.
pub(crate) fn constant_long(cx: &Context) {
    // The kernel compares nanoseconds with those of a second, or with one less. A call with
    // 999999999 sleeps for as long.
    const WHOLE: [u64; 2] = [999_999_999, 1_000_000_000];
    let bound = |nanoseconds: u64| {
        let time = [0, nanoseconds];
        let found = collect(cx, || {
            // SAFETY: the call reads two words, which `time` has, and writes nothing to null.
            let returned = unsafe { libc::nanosleep(time.as_ptr().cast(), null_mut()) };
            assert_eq!(returned == -1, nanoseconds > 999_999_999, "{nanoseconds} nanoseconds");
        });
        let bound = found.iter().find(|c| {
            let kind = kcov_cmp_size(3) | KCOV_CMP_CONST;
            (c.kind, c.second) == (kind, nanoseconds) && WHOLE.contains(&c.first)
        });
        bound.unwrap_or_else(|| panic!("{nanoseconds:#x} in {found:#x?}")).first
    };
    let constant = bound(0x1234_5678_1234_5678);
    // Values that are not greater than the constant, and the greatest.
    for nanoseconds in [0, 5, constant, u64::MAX] {
        assert_eq!(bound(nanoseconds), constant);
    }
}

pub(crate) const CHECKS: &[Check] = &[
    check("cmp.operands.longs", |cx| {
        // The kernel compares a limit with its maximum.
        const LIMIT: u64 = 0x1122_3344_5566_7788;
        const MAXIMUM: u64 = 0x1122_3344_5566_7780;
        let (size, mask) = if word_bytes() == 8 { (3, u64::MAX) } else { (2, u32::MAX.into()) };
        let (limit, maximum) = (LIMIT & mask, MAXIMUM & mask);
        shows_only(cx, kcov_cmp_size(size), (limit, maximum), || {
            let set = setrlimit(Resource::RLIMIT_NOFILE, limit as rlim_t, maximum as rlim_t);
            assert!(set.is_err(), "the limit is above its maximum");
        });
        // Zero is no constant here, and neither are two equal values.
        for (limit, maximum) in [(limit, 0), (limit, limit), (mask, maximum)] {
            shows(cx, kcov_cmp_size(size), &[(limit, maximum)], || {
                let _ = setrlimit(Resource::RLIMIT_CORE, limit as rlim_t, maximum as rlim_t);
            });
        }
    }),
    check("cmp.operands.constant-int", |cx| {
        // The call compares its argument with nothing else. The highest bit is set, so
        // sign extension would show.
        const ARGUMENT: u32 = 0x9234_5678;
        let found = collect(cx, || compare_argument(ARGUMENT));
        let argument = u64::from(ARGUMENT);
        let all =
            found.iter().filter(|c| [c.first, c.second].contains(&argument)).collect::<Vec<_>>();
        let kind = kcov_cmp_size(2) | KCOV_CMP_CONST;
        assert!(all.iter().all(|c| c.kind == kind && c.second == argument), "{all:#x?}");
        let constant = all.iter().map(|c| c.first).find(|first| CONSTANT.contains(first));
        let constant = constant.unwrap_or_else(|| panic!("{all:#x?}"));
        // Arguments that are not greater than the constant, and the greatest.
        for argument in [0, 3, constant, u32::MAX.into()] {
            shows(cx, kind, &[(constant, argument)], || compare_argument(argument as u32));
        }
    }),
];
