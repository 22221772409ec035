//! Two processes that do things at once, each on a processor of its own.
//!
//! Not two threads: User-Mode Linux never executes two threads of one process outside of the kernel
//! at once, so that one of them would always come first.

use crate::errno::{Errno, Result};
use crate::raw::{Child, LONG, Map, page_size};
use libc::{MAP_ANONYMOUS, MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

/// Runs `left` here and `right` in a child.
///
/// # Panics
///
/// If one of them does.
pub fn race(left: impl FnOnce(&Side), right: impl FnOnce(&Side)) {
    let (prot, flags) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    let map = Map::new(&-1, page_size(), 0, prot, flags).expect("a page for both");
    let other: Child<()> = Child::start(|| right(&Side::new(&map, 1)));
    left(&Side::new(&map, 0));
    other.end();
}

/// Keeps this thread, and what it starts, on one processor.
///
/// # Panics
///
/// If there is no such processor.
pub fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor).expect("a number of a processor");
    sched_setaffinity(Pid::from_raw(0), &set).expect("the thread is moved");
}

/// Passes some time without a system call: how much follows from the two numbers, mostly little.
pub fn delay(repetition: u64, side: u64) {
    let mut random = fastrand::Rng::with_seed(repetition * 2 + side);
    let most = 1 << random.u32(0..15);
    for step in 0..random.u32(0..most) {
        black_box(step);
    }
}

/// One of the two.
#[derive(Debug)]
pub struct Side<'a> {
    map: &'a Map,
    /// 0 or 1.
    pub number: usize,
    met: Cell<u64>,
}

impl Side<'_> {
    fn new(map: &Map, number: usize) -> Side<'_> {
        pin(number);
        Side { map, number, met: Cell::new(0) }
    }

    /// Waits until the other one is there as often.
    ///
    /// # Panics
    ///
    /// If that takes it very long.
    pub fn meet(&self) {
        self.met.set(self.met.get() + 1);
        self.map.store(self.number, self.met.get());
        let start = Instant::now();
        let mut turns = 0_u32;
        while self.map.load(1 - self.number) < self.met.get() {
            // A system call takes longer than much of what is to be done at once.
            turns = turns.wrapping_add(1);
            if turns % 1024 == 0 {
                assert!(start.elapsed() < LONG, "the other side does not come");
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    /// Does something when the other one does, give or take some time that follows from the number.
    pub fn at_once<T>(&self, repetition: u64, body: impl FnOnce() -> T) -> T {
        self.meet();
        delay(repetition, self.number as u64);
        body()
    }

    /// Tells the other one a result, and returns the other's.
    pub fn exchange(&self, own: Result<()>) -> Result<()> {
        // Not where the last one was, which may not have been read yet.
        let place = |number| 2 + 2 * usize::from(self.met.get() % 2 == 1) + number;
        let (mine, other) = (place(self.number), place(1 - self.number));
        self.map.store(mine, own.err().map_or(0, |errno| errno.0.unsigned_abs().into()));
        self.meet();
        match i32::try_from(self.map.load(other)).expect("a result") {
            0 => Ok(()),
            number => Err(Errno(number)),
        }
    }
}
