//! An executor that works with any kernel, real or fake: its device comes from a [`Builder`].

use kcov::{Builder, ChildBuffer, Completeness, Error, Pc, mode::TracePc};
use std::collections::HashSet;

/// The result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It reached this many places that no earlier case had reached.
    New(usize),
    /// It reached nothing new.
    Known,
    /// As `New`, but the buffer was full: there may be more.
    Truncated(usize),
    /// Something wrote to the buffer, so what the case reached is unknown.
    Corrupt,
}

/// Runs cases in children and remembers the PCs that they reach.
#[derive(Debug)]
pub struct Executor {
    buffer: ChildBuffer<TracePc>,
    seen: HashSet<Pc>,
}

impl Executor {
    pub fn new(builder: Builder) -> Result<Executor, Error> {
        let buffer = builder.open()?.into_child_buffer(TracePc)?;
        Ok(Executor { buffer, seen: HashSet::new() })
    }

    /// Runs a case. `child` enables the buffer in a child and returns after the child has ended,
    /// normally or not. It fails if the child could not enable.
    pub fn run<E: From<Error>>(
        &mut self,
        child: impl FnOnce(&mut ChildBuffer<TracePc>) -> Result<(), E>,
    ) -> Result<Verdict, E> {
        self.buffer.reset();
        child(&mut self.buffer)?;
        let (trace, before) = (self.buffer.trace()?, self.seen.len());
        self.seen.extend(trace.iter());
        let new = self.seen.len() - before;
        Ok(match trace.completeness() {
            Completeness::Complete if new == 0 => Verdict::Known,
            Completeness::Complete => Verdict::New(new),
            Completeness::Truncated => Verdict::Truncated(new),
            // A corrupt trace has no records.
            _ => Verdict::Corrupt,
        })
    }
}
