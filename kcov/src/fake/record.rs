//! Records in the buffers of a fake kernel.

use super::Kernel;
use super::state::{Memory, memory};
use crate::record::Comparison;
use crate::remote::linux::{CommonHandle, GlobalHandle};
use crate::remote::netbsd::Source;
use kcov_model::{self as model, Handle, Instance, Mode, Origin, Place, T};
use std::sync::atomic::Ordering;

/// Records the execution of a system call or a section.
#[derive(Debug)]
pub struct Recorder {
    kernel: Kernel,
    target: Target,
}

/// Where records go.
#[derive(Debug)]
enum Target {
    Nowhere,
    /// Where the thread is traced, at each record.
    Thread(T),
    /// To a source's buffer, in the mode that it has at each record.
    Source(Instance),
    /// To a section's own area, in the mode of its start.
    Area(Memory, Mode),
}

impl Recorder {
    pub(super) fn of_thread(kernel: Kernel, thread: T) -> Recorder {
        Recorder { kernel, target: Target::Thread(thread) }
    }

    /// Executes a basic block, which is recorded in PC mode.
    ///
    /// # Panics
    ///
    /// If the real driver would write outside its buffer.
    pub fn pc(&mut self, address: u64) {
        self.record(Mode::Pc, &[address]);
    }

    /// Executes a comparison, which is recorded in comparison mode.
    ///
    /// # Panics
    ///
    /// If the real driver would write outside its buffer. That takes a count that only user space
    /// can have stored.
    pub fn comparison(&mut self, comparison: Comparison) {
        self.record(Mode::Cmp, &comparison.words());
    }

    fn record(&self, mode: Mode, record: &[u64]) {
        let enabled = match &self.target {
            Target::Nowhere => None,
            Target::Thread(thread) => self.kernel.state().traced(*thread),
            Target::Source(buffer) => self.kernel.state().recording(*buffer),
            Target::Area(memory, mode) => Some((memory.clone(), *mode)),
        };
        let Some((memory, _)) = enabled.filter(|enabled| enabled.1 == mode) else { return };
        let found = memory[0].load(Ordering::Relaxed);
        let place = self.kernel.state().driver.place(mode, memory.len() as u64, found);
        match place {
            Place::Dropped => {}
            Place::At { index, count } => {
                memory[0].store(count, Ordering::Relaxed);
                for (to, word) in memory[index as usize..].iter().zip(record) {
                    to.store(*word, Ordering::Relaxed);
                }
            }
            Place::Outside => {
                panic!("the driver writes outside of its buffer: it found a count of {found:#x}")
            }
        }
    }

    /// Records what every request executes.
    pub(super) fn request(&mut self) {
        self.pc(0xffff_ffff_8000_0010);
        self.comparison(Comparison::from_words([7, 0x6300, 0x6364, 0xffff_ffff_8000_0010]));
    }
}

/// The work that a section does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// A handle of Linux, as in `KCOV_REMOTE_ENABLE`.
    Handle(u64),
    /// A source of NetBSD.
    Source(Source),
}

impl From<CommonHandle> for Work {
    fn from(handle: CommonHandle) -> Work {
        Work::Handle(handle.raw())
    }
}

impl From<GlobalHandle> for Work {
    fn from(handle: GlobalHandle) -> Work {
        Work::Handle(handle.raw())
    }
}

impl From<Source> for Work {
    fn from(source: Source) -> Work {
        Work::Source(source)
    }
}

/// Background work. Dropping it ends it; only then does Linux append its records.
#[derive(Debug)]
pub struct Section {
    recorder: Recorder,
    /// None if nobody collects it.
    collected: Option<model::Section>,
}

impl Section {
    pub(super) fn start(kernel: Kernel, work: Work) -> Section {
        let origin = match work {
            Work::Handle(handle) => Origin::Handle(Handle(handle)),
            Work::Source(source) => Origin::Source(source.subsystem, source.id),
        };
        let state = kernel.state();
        let collected = state.driver.begin(origin);
        let target = collected.map_or(Target::Nowhere, |section| match section.area {
            // The end of the section drops records beyond the buffer's size anyway.
            Some((words, _)) => {
                let most = state.driver.words(section.buffer).unwrap_or(0);
                Target::Area(memory(words.min(most).max(1)), section.mode)
            }
            None => Target::Source(section.buffer),
        });
        drop(state);
        Section { recorder: Recorder { kernel, target }, collected }
    }

    /// Runs the part of the section that `body` records.
    pub fn run<R>(&mut self, body: impl FnOnce(&mut Recorder) -> R) -> R {
        body(&mut self.recorder)
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        let Some(section) = self.collected else { return };
        let Target::Area(area, mode) = &self.recorder.target else { return };
        let mut state = self.recorder.kernel.state();
        if !state.driver.appends(&section) {
            return;
        }
        let memory = state.buffer(section.buffer);
        // Append as many whole records as fit.
        let there = memory[0].load(Ordering::Relaxed);
        let Some(room) = mode.capacity(memory.len() as u64).checked_sub(there) else { return };
        let more = area[0].load(Ordering::Relaxed).min(room);
        let stride = mode.stride();
        let (from, to) = (&area[1..], &memory[(1 + there * stride) as usize..]);
        for (from, to) in from.iter().zip(to).take((more * stride) as usize) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        memory[0].store(there + more, Ordering::Relaxed);
    }
}
