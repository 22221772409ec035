//! Two processes that do things at the same time, each on its own processor if there are two.
//!
//! Threads would not do: User-Mode Linux never runs two threads of one process in user space at
//! once, so one of them would always come first.

use super::*;
use nix::sched::{CpuSet, sched_setaffinity};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

/// Runs `left` in this process and `right` in a child.
pub fn race(left: impl FnOnce(&Side), right: impl FnOnce(&Side)) {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let map = Map::new(&-1, page_size(), 0, READ_WRITE, flags).expect("a page for both");
    let other: Child<()> = Child::start(|| right(&Side::new(&map, 1)));
    left(&Side::new(&map, 0));
    other.end();
}

/// Pins this thread, and whatever it starts, to one processor, if the machine has it.
pub fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor).expect("a number of a processor");
    match sched_setaffinity(Pid::from_raw(0), &set) {
        // No such processor.
        Ok(()) | Err(nix::errno::Errno::EINVAL) => {}
        Err(errno) => panic!("the thread is not moved: {errno}"),
    }
}

/// Spins for a pseudo-random time that both numbers determine, usually a short one.
pub fn delay(repetition: u64, side: u64) {
    let mut random = fastrand::Rng::with_seed(repetition * 2 + side);
    let most = 1 << random.u32(0..15);
    for step in 0..random.u32(0..most) {
        black_box(step);
    }
}

pub struct Side<'a> {
    map: &'a Map,
    pub number: usize,
    met: Cell<u64>,
}

impl Side<'_> {
    fn new(map: &Map, number: usize) -> Side<'_> {
        pin(number);
        Side { map, number, met: Cell::new(0) }
    }

    /// Waits until the other side has come to as many meetings.
    pub fn meet(&self) {
        self.met.set(self.met.get() + 1);
        self.map.store(self.number, self.met.get());
        let start = Instant::now();
        let mut turns = 0_u32;
        while self.map.load(1 - self.number) < self.met.get() {
            // Mostly spins: a system call takes longer than many of the raced operations.
            turns = turns.wrapping_add(1);
            if turns % 1024 == 0 {
                assert!(start.elapsed() < LONG, "the other side does not come");
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    /// Runs `body` at the same time as the other side, after a delay derived from `repetition`.
    pub fn at_once<T>(&self, repetition: u64, body: impl FnOnce() -> T) -> T {
        self.meet();
        delay(repetition, self.number as u64);
        body()
    }

    /// Tells the other side a result, and returns the other side's.
    pub fn exchange(&self, own: Result<()>) -> Result<()> {
        // Alternates between two places, since the other side may not have read the last result.
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
