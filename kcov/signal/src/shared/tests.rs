//! The model checker loom tries all interleavings of the smallest cases.

use super::parts::{HEAD, LEN, Parts, Word, impl_word};
use crate::fallback::{Inserted, first_slot, slots};
use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::vec::Vec;

type Checked = loom::sync::atomic::AtomicU64;

impl_word!(Checked);

struct Memory {
    head: Vec<Checked>,
    bits: Vec<Checked>,
    slots: Vec<Checked>,
    capacity: u64,
}

impl Memory {
    fn new(capacity: usize) -> Arc<Memory> {
        let words = |count| (0..count).map(|_| Checked::new(0)).collect();
        let (head, bits, slots) = (words(HEAD), words(1), words(slots(capacity)));
        Arc::new(Memory { head, bits, slots, capacity: capacity as u64 })
    }

    fn parts(&self) -> Parts<'_, Checked> {
        let Memory { head, bits, slots, capacity } = self;
        Parts { head, bits, slots, capacity: *capacity }
    }
}

/// Runs both in every order and returns their results.
fn both<T: Send + 'static>(
    memory: &Arc<Memory>,
    first: impl FnOnce(Parts<'_, Checked>) -> T + Send + 'static,
    second: impl FnOnce(Parts<'_, Checked>) -> T,
) -> (T, T) {
    let shared = Arc::clone(memory);
    let thread = loom::thread::spawn(move || first(shared.parts()));
    let second = second(memory.parts());
    (thread.join().unwrap(), second)
}

#[test]
fn one_of_two_sees_a_bit_as_new() {
    loom::model(|| {
        let memory = Memory::new(1);
        let told = both(&memory, |parts| parts.insert(5), |parts| parts.insert(5));
        assert!(matches!(
            told,
            (Inserted::New, Inserted::Known) | (Inserted::Known, Inserted::New)
        ));
        assert!(memory.parts().contains(5) && !memory.parts().contains(6));
    });
}

#[test]
fn neighbouring_bits_do_not_overwrite_each_other() {
    loom::model(|| {
        let memory = Memory::new(1);
        let told = both(&memory, |parts| parts.insert(5), |parts| parts.insert(6));
        assert_eq!(told, (Inserted::New, Inserted::New));
        assert!(memory.parts().contains(5) && memory.parts().contains(6));
    });
}

#[test]
fn one_of_two_sees_an_outsider_as_new() {
    for number in [0, 7] {
        loom::model(move || {
            let memory = Memory::new(2);
            let insert = move |parts: Parts<'_, Checked>| parts.insert_outside(number);
            let told = both(&memory, insert, insert);
            assert!(matches!(
                told,
                (Inserted::New, Inserted::Known) | (Inserted::Known, Inserted::New)
            ));
            assert!(memory.parts().contains_outside(number));
            assert_eq!(memory.parts().outside().collect::<Vec<_>>(), [number]);
            assert_eq!(memory.head[LEN].load(Ordering::Relaxed), 1);
        });
    }
}

/// The other may see that the place is taken before it sees the number.
#[test]
fn one_of_two_sees_the_last_outsider_as_new() {
    for number in [0, 7] {
        loom::model(move || {
            let memory = Memory::new(1);
            let insert = move |parts: Parts<'_, Checked>| parts.insert_outside(number);
            let (first, second) = both(&memory, insert, insert);
            assert!((first == Inserted::New) != (second == Inserted::New));
            assert_eq!(memory.parts().outside().collect::<Vec<_>>(), [number]);
            assert_eq!(memory.head[LEN].load(Ordering::Relaxed), 1);
        });
    }
}

/// However a clear and an insertion interleave, places and numbers agree afterwards.
#[test]
fn clearing_gives_back_each_place_once() {
    for number in [0, 7] {
        loom::model(move || {
            let memory = Memory::new(2);
            memory.parts().insert_outside(number);
            let insert = move |parts: Parts<'_, Checked>| _ = parts.insert_outside(number);
            both(&memory, |parts| parts.clear(), insert);
            let left = memory.parts().outside().count() as u64;
            assert!(left <= 1);
            assert_eq!(memory.head[LEN].load(Ordering::Relaxed), left);
        });
    }
}

#[test]
fn outsiders_that_want_the_same_slot_both_get_one() {
    let second = (8..).find(|&other| first_slot(other, 4) == first_slot(7, 4)).unwrap();
    loom::model(move || {
        let memory = Memory::new(2);
        let told = both(
            &memory,
            |parts| parts.insert_outside(7),
            move |parts| parts.insert_outside(second),
        );
        assert_eq!(told, (Inserted::New, Inserted::New));
        assert!(memory.parts().contains_outside(7));
        assert!(memory.parts().contains_outside(second));
    });
}

#[test]
fn the_fallback_never_holds_more_than_its_capacity_and_says_who_was_left_out() {
    loom::model(|| {
        let memory = Memory::new(1);
        let told = both(&memory, |parts| parts.insert_outside(7), |parts| parts.insert_outside(8));
        assert!(matches!(told, (Inserted::New, Inserted::Full) | (Inserted::Full, Inserted::New)));
        assert_eq!(memory.parts().outside().count(), 1);
    });
}
