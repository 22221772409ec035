//! Random operations: possible ones, weighted by how interesting they are.

use crate::system::lockstep::{self as system, Driver};
use fastrand::Rng;
use kcov_model::{Driver as _, *};

/// The limits of processes, and of descriptors and mappings of each process.
const MOST_PROCESSES: usize = 4;
const MOST_NAMES: usize = 6;

/// The generator.
#[derive(Debug)]
pub struct Generator {
    rng: Rng,
    works: Vec<Work>,
    names: u32,
}

macro_rules! kinds {
    ($($kind:ident = $weight:expr,)*) => {
        #[derive(Clone, Copy, Debug)]
        enum Kind { $($kind,)* }

        /// The kinds of operations with their weights.
        const KINDS: &[(Kind, u32)] = &[$((Kind::$kind, $weight),)*];
    };
}

kinds! {
    Open = 70,
    Duplicate = 20,
    Pass = 25,
    Close = 50,
    Ask = 450,
    Misuse = 8,
    Map = 90,
    Unmap = 30,
    Remap = 12,
    Protect = system::PROTECT_WEIGHT,
    Trace = 120,
    Background = system::WORK_WEIGHT,
    Store = 25,
    Load = 40,
    StartThread = 24,
    EndThread = 16,
    Fork = 6,
    Execute = 2,
    Exit = 2,
    Kill = 3,
}

impl Generator {
    /// The same seed gives the same operations, as long as the kernel gives the same answers.
    pub fn new(seed: u64, works: Vec<Work>) -> Generator {
        Generator { rng: Rng::with_seed(seed), works, names: 1 }
    }

    /// The number of operations of the next run.
    pub fn length(&mut self) -> usize {
        self.rng.usize(50..600)
    }

    /// A possible operation.
    pub fn operation(&mut self, world: &World<Driver>) -> Operation {
        loop {
            let operation = self.candidate(world);
            let Some(operation) = operation.filter(|operation| world.possible(operation)) else {
                continue;
            };
            // Refusals change nothing. With fewer of them, more states are reached.
            if !is_refused(world, &operation) || self.rng.u8(0..3) == 0 {
                return operation;
            }
        }
    }

    fn candidate(&mut self, world: &World<Driver>) -> Option<Operation> {
        let threads: Vec<T> = world.threads().map(|(thread, _)| thread).collect();
        let thread = self.one(&threads)?;
        let descriptors: Vec<D> = world.descriptors(thread).collect();
        let maps: Vec<M> = world.maps(thread).map(|(name, _)| name).collect();
        // Names are never reused, so leaving out an operation does not affect the others.
        self.names += 1;
        let name = self.names;
        let few_threads = threads.len() < MOST_THREADS;
        Some(match self.kind() {
            Kind::Open if descriptors.len() < MOST_NAMES => {
                Operation::Open { thread, descriptor: D(name), access: self.access() }
            }
            Kind::Duplicate if descriptors.len() < MOST_NAMES => {
                let descriptor = self.one(&descriptors)?;
                Operation::Duplicate { thread, descriptor, new: D(name) }
            }
            Kind::Pass => {
                let (descriptor, to) = (self.one(&descriptors)?, self.one(&threads)?);
                if world.descriptors(to).count() >= MOST_NAMES {
                    return None;
                }
                Operation::Pass { thread, descriptor, to, new: D(name) }
            }
            Kind::Close => Operation::Close { thread, descriptor: self.one(&descriptors)? },
            Kind::Ask => {
                let request = system::request(&mut self.rng, &world.driver);
                let descriptor = self.asked(world, thread, &descriptors, &request)?;
                Operation::Ask { thread, descriptor, request }
            }
            Kind::Misuse => {
                let descriptor = self.one(&descriptors)?;
                Operation::Misuse { thread, descriptor, call: self.one(system::MISUSES)? }
            }
            Kind::Map if maps.len() < MOST_NAMES => {
                let descriptor = self.one(&descriptors)?;
                let geometry = self.geometry(world, thread, descriptor);
                Operation::Map { thread, descriptor, map: M(name), geometry }
            }
            Kind::Unmap => Operation::Unmap { thread, map: self.one(&maps)? },
            Kind::Remap => {
                let how = self.one(system::REMAPS)?;
                let map = self.one(&maps)?;
                Operation::Remap { thread, map, how }
            }
            Kind::Protect => {
                // Usually of use again.
                let protection = match self.rng.u8(0..8) {
                    0 => Protection::None,
                    1 | 2 => Protection::Read,
                    _ => Protection::ReadWrite,
                };
                Operation::Protect { thread, map: self.one(&maps)?, protection }
            }
            Kind::Trace => {
                let map = self.one(&maps)?;
                Operation::Trace { thread, map, count: self.count(world, thread, map) }
            }
            Kind::Background => {
                let work = self.rng.choice(&self.works).copied()?;
                let map = self.collecting(world, thread, &maps)?;
                Operation::Background { thread, map, work, count: self.count(world, thread, map) }
            }
            Kind::Store => {
                Operation::Store { thread, map: self.one(&maps)?, word: u64::from(name) }
            }
            Kind::Load => Operation::Load { thread, map: self.one(&maps)? },
            Kind::StartThread if few_threads => Operation::StartThread { thread, new: T(name) },
            Kind::EndThread => Operation::EndThread { thread },
            Kind::Fork if few_threads && world.processes().len() < MOST_PROCESSES => {
                Operation::Fork { thread, new: T(name) }
            }
            Kind::Execute => Operation::Execute { thread, keep: self.rng.bool() },
            // Usually keeps the last process.
            Kind::Exit if world.processes().len() > 1 => Operation::Exit { thread },
            Kind::Kill if world.processes().len() > 1 => Operation::Kill { thread },
            _ => return None,
        })
    }

    fn kind(&mut self) -> Kind {
        let total: u32 = KINDS.iter().map(|(_, weight)| weight).sum();
        let mut left = self.rng.u32(0..total);
        for &(kind, weight) in KINDS {
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        unreachable!("the weights add up")
    }

    fn one<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        self.rng.choice(all).copied()
    }

    /// A descriptor to ask. Half of the time it would accept a good request of the same kind, if
    /// there is such a descriptor. On others, the state hides an argument that should be refused.
    fn asked(
        &mut self,
        world: &World<Driver>,
        thread: T,
        descriptors: &[D],
        request: &Request,
    ) -> Option<D> {
        if let Some(good) = system::good(request).filter(|_| self.rng.bool()) {
            let accepts = |&descriptor: &D| {
                let ask = Operation::Ask { thread, descriptor, request: good.clone() };
                world.possible(&ask) && !is_refused(world, &ask)
            };
            let some: Vec<D> = descriptors.iter().copied().filter(accepts).collect();
            if !some.is_empty() {
                return self.one(&some);
            }
        }
        self.one(descriptors)
    }

    fn access(&mut self) -> Access {
        match self.rng.u8(0..8) {
            0 => Access::ReadOnly,
            1 => Access::WriteOnly,
            _ => Access::ReadWrite,
        }
    }

    /// Usually a valid mapping.
    fn geometry(&mut self, world: &World<Driver>, thread: T, descriptor: D) -> Geometry {
        let instance = world.instance(thread, descriptor).expect("a descriptor");
        let page = world.driver.page();
        let words = world.driver.words(world.driver.buffer(instance)).unwrap_or(page / WORD);
        let bytes = (words * WORD).next_multiple_of(page);
        let bytes = match self.rng.u8(0..10) {
            0 => bytes + page,
            1 => bytes.saturating_sub(page),
            2 => page,
            3 => bytes - page / 2,
            4 => 100,
            _ => bytes,
        };
        let offset = if self.rng.u8(0..8) == 0 { self.one(system::OFFSETS) } else { None };
        Geometry {
            bytes,
            offset: offset.unwrap_or(0),
            writable: self.rng.u8(0..8) > 0,
            executable: system::EXECUTABLE && self.rng.u8(0..16) == 0,
            private: self.rng.u8(0..8) == 0,
        }
    }

    /// Usually a mapping of a buffer into which sections are collected, if there is one.
    fn collecting(&mut self, world: &World<Driver>, thread: T, maps: &[M]) -> Option<M> {
        let remote = |map: &M| world.recording(thread, *map).is_some_and(|r| r.thread.is_none());
        let some: Vec<M> = maps.iter().copied().filter(remote).collect();
        if some.is_empty() || self.rng.u8(0..4) == 0 { self.one(maps) } else { self.one(&some) }
    }

    /// Counts near the limits.
    fn count(&mut self, world: &World<Driver>, thread: T, map: M) -> u64 {
        let recording = world.recording(thread, map);
        let capacity = recording.map_or(1, |r| r.mode.capacity(r.words));
        match self.rng.u8(0..16) {
            0..3 => capacity.saturating_sub(self.rng.u64(1..8)),
            3 => capacity,
            4 => capacity + 1,
            // Those that are negative, small or too large for another type or after a shift.
            5..8 => {
                let far = 1 << [31, 32, 40, 61, 62, 63][self.rng.usize(0..6)];
                [far, far - 1, far + capacity / 2, u64::MAX - 1, u64::MAX][self.rng.usize(0..5)]
            }
            _ => 0,
        }
    }
}

fn is_refused(world: &World<Driver>, operation: &Operation) -> bool {
    match operation {
        Operation::Ask { .. } | Operation::Map { .. } => !world.refusals(operation).is_empty(),
        _ => matches!(world.clone().step(operation)[0].0, Outcome::Refused(_)),
    }
}

/// Sizes: valid ones, some in whole pages, and those at the limits. `fails` if no memory suffices for
/// the greatest.
pub(crate) fn size(rng: &mut Rng, most: u64, fails: bool) -> Request {
    Request::Size(match rng.u8(0..21) {
        0 => 0,
        1 => 1,
        2 => most + 1,
        3 => u64::MAX,
        4 => 1 << 32 | 512,
        5 => 2,
        6 => 5,
        7 => 513,
        8 => 4096,
        9..13 => 1024,
        20 if fails => most,
        _ => 512,
    })
}

#[cfg(test)]
mod tests {
    use super::{Generator, MOST_NAMES, MOST_PROCESSES};
    use crate::feature::Feature;
    use crate::system::lockstep as system;
    use kcov_model::{MOST_THREADS, Operation, Work, World};

    /// The operations for a kernel that never lags behind.
    fn operations(seed: u64) -> Vec<Operation> {
        let mut generator = Generator::new(seed, vec![Work::Worker, Work::SoftInterrupt]);
        let features = [Feature::Comparisons, Feature::Long64, Feature::NetBsd10, Feature::Vhci];
        let mut world = World::new(system::driver(&features).expect("a model"));
        let mut all = Vec::new();
        for _ in 0..5000 {
            let operation = generator.operation(&world);
            world = world.step(&operation).remove(0).1;
            assert!(world.threads().len() <= MOST_THREADS);
            assert!(world.processes().len() <= MOST_PROCESSES);
            for (thread, _) in world.threads() {
                assert!(world.descriptors(thread).count() <= MOST_NAMES);
                assert!(world.maps(thread).count() <= MOST_NAMES);
            }
            all.push(operation);
        }
        all
    }

    #[test]
    fn a_seed_is_a_sequence_within_bounds() {
        let one = operations(1);
        assert_eq!(one, operations(1));
        assert_ne!(one, operations(2));
        let kinds: std::collections::HashSet<_> = one.iter().map(std::mem::discriminant).collect();
        assert!(kinds.len() >= 18, "{kinds:?}");
    }
}
