//! Refused calls, and everything that they must leave unchanged.

use super::shared::{COVER_SIZE, SENTINEL, is_sentinel, mark};
use crate::checks::prelude::*;
use crate::errno::Result;
use std::fmt::Debug;

impl Context {
    /// Asserts that the device refuses the request with exactly the claim's error. The refusal must
    /// leave the buffer and its size as they are, and whether this thread is traced, in which mode,
    /// and whether it can enable the device.
    #[track_caller]
    pub(crate) fn refused_by<T: Debug>(
        &self,
        device: &Device,
        request: impl FnOnce(&Device) -> Result<T>,
    ) {
        let mapped = |words| device.map(words).ok();
        let Some(map) = [COVER_SIZE, page_words()].into_iter().find_map(mapped) else {
            return self.refused(request(device));
        };
        let words = map.copy(0, map.words());
        let state = || (traced(&map), enabling(device, &map));
        let before = state();
        mark(&map, SENTINEL);
        let result = request(device);
        let count = map.count();
        let stored = (1..map.words()).find(|&index| !is_sentinel(&map.load(index)));
        let after = state();
        words.iter().enumerate().rev().for_each(|(index, &word)| map.store(index, word));
        self.refused(result);
        assert_eq!(count, map.words() as u64, "a refusal leaves the count as it is");
        assert_eq!(stored, None, "a refusal stores no word");
        assert_eq!(
            after, before,
            "a refusal leaves this thread traced as it was, and able to enable the device or not"
        );
    }
}

/// Enables the device and disables it again, or returns the error.
fn enabling(device: &Device, map: &Map) -> Result<Traced> {
    device.enable(KCOV_TRACE_PC)?;
    let traced = traced(map);
    device.disable()?;
    Ok(traced)
}

/// How a thread is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traced {
    Not,
    Counters { to_the_end: bool },
    Comparisons { to_the_end: bool },
}

/// Determines how this thread is traced into this buffer.
fn traced(map: &Map) -> Traced {
    /// How often to retry while the buffer's owner, another thread, may not have come to rest.
    const PATIENCE: u32 = 200;
    for _ in 0..PATIENCE {
        map.reset();
        call();
        if map.count() == 0 {
            return Traced::Not;
        }
        std::thread::yield_now();
    }
    let reaches = |records: usize| {
        map.store(0, records as u64 - 1);
        call();
        map.count() >= records as u64
    };
    // A comparison's type is a small number, a program counter is not.
    if map.load(1) < 8 {
        Traced::Comparisons { to_the_end: reaches((map.bytes() / 8 - 1) / 4) }
    } else {
        Traced::Counters { to_the_end: reaches(map.words() - 1) }
    }
}
