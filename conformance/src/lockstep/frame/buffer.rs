//! A buffer and its expected words.

use crate::raw::{Map, page_size};
use kcov_model::{FULL, Instance, Mode, Outcome, Recording, WORD};
use std::ops::Range;

pub type Kept = Result<(), Outcome>;

pub fn changed<T>(what: String) -> Result<T, Outcome> {
    Err(Outcome::Other(what))
}

#[derive(Debug)]
pub struct Buffer {
    pub map: Map,
    pub words: Vec<u64>,
}

impl Buffer {
    pub fn of(instance: Instance, map: Map, unknown: bool) -> Result<Buffer, Outcome> {
        let mut words = map.copy(0, map.words());
        if let Some(index) = words.iter().position(|&word| word != 0).filter(|_| !unknown) {
            return changed(format!("word {index} of a new buffer is {:#x}", words[index]));
        }
        if map.is_writable() {
            // `Operation::Store` uses the last word of each page.
            let page_words = page_size() / WORD as usize;
            for (index, word) in words.iter_mut().enumerate() {
                if index == 0 {
                    *word = FULL;
                } else if (index + 1) % page_words != 0 {
                    *word = 0x5a5a << 48 | u64::from(instance.0) << 32 | index as u64;
                }
                map.store(index, *word);
            }
        }
        Ok(Buffer { map, words })
    }

    /// Compares all words except `free`, and restores the expected ones.
    pub fn compare(&self, free: &Range<usize>) -> Kept {
        for (index, &word) in self.words.iter().enumerate() {
            let seen = self.map.load(index);
            if seen == word {
                continue;
            }
            if !free.contains(&index) {
                let last = self.words.len() - 1;
                return changed(format!("word {index} of 0..={last} was {word:#x}, is {seen:#x}"));
            }
            self.map.store(index, word);
        }
        Ok(())
    }

    pub fn hold(&self) {
        self.map.store(0, FULL);
    }

    pub fn is_held(&self) -> bool {
        self.map.count() == FULL
    }
}

/// The words that sections change when the count becomes this.
pub fn collected(recording: Recording, from: u64, to: u64) -> Range<usize> {
    if from > recording.mode.capacity(recording.words) {
        return 0..0;
    }
    let all = records(recording, from, to);
    // The kernel may store a part of a comparison that does not fit, behind the counted ones.
    // Before it seemed to be done, it may have finished earlier work.
    let more = recording.mode == Mode::Cmp || from == to;
    if more { all.start..recording.words as usize } else { all }
}

/// The words of the records between these counts.
pub fn records(recording: Recording, from: u64, to: u64) -> Range<usize> {
    let each = recording.mode.stride();
    if to > recording.mode.capacity(recording.words) || from > to {
        // The count overflowed and restarted, so every record may have changed.
        return 1..recording.words as usize;
    }
    let place = |count| (1 + count * each) as usize;
    place(from)..place(to)
}
