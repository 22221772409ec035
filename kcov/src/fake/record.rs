//! Records in the buffers of a fake kernel.

use super::state::{Memory, Mode, memory};
use super::{Kernel, Rules};
use crate::record::Comparison;
use crate::remote::linux::{CommonHandle, GlobalHandle};
use crate::remote::netbsd::Source;
use std::sync::atomic::Ordering;

/// Records the execution of a system call or a section.
#[derive(Debug)]
pub struct Recorder {
    rules: Rules,
    traced: Option<(Memory, Mode)>,
}

impl Recorder {
    pub(super) fn new(rules: Rules, traced: Option<(Memory, Mode)>) -> Recorder {
        Recorder { rules, traced }
    }

    /// Executes a basic block, which is recorded in PC mode.
    ///
    /// # Panics
    ///
    /// If the real driver would write outside its buffer.
    pub fn pc(&mut self, address: u64) {
        let Some((memory, Mode::Pc)) = &self.traced else { return };
        let count = memory[0].load(Ordering::Relaxed);
        match self.rules {
            Rules::Linux => {
                // A count of all ones wraps around, so the record overwrites the count.
                let position = count.wrapping_add(1);
                if position < memory.len() as u64 {
                    memory[0].store(position, Ordering::Relaxed);
                    memory[position as usize].store(address, Ordering::Relaxed);
                }
            }
            Rules::NetBsd => {
                if count < memory.len() as u64 - 1 {
                    memory[count as usize + 1].store(address, Ordering::Relaxed);
                    memory[0].store(count + 1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Executes a comparison, which is recorded in comparison mode.
    ///
    /// # Panics
    ///
    /// If the real driver would write outside its buffer. That takes a count that only user space
    /// can have stored.
    pub fn comparison(&mut self, comparison: Comparison) {
        let Some((memory, Mode::Cmp)) = &self.traced else { return };
        let count = memory[0].load(Ordering::Relaxed);
        let words = memory.len() as u64;
        let start = match self.rules {
            Rules::Linux if count >= words / 4 => return,
            Rules::Linux => 1 + count * 4,
            Rules::NetBsd => count.wrapping_mul(4).wrapping_add(1),
        };
        if start.wrapping_add(3) >= words {
            return;
        }
        assert!(
            count < words / 4,
            "the driver writes outside of its buffer: it found a count of {count:#x}"
        );
        memory[0].store(count + 1, Ordering::Relaxed);
        for (place, word) in memory[start as usize..].iter().zip(comparison.words()) {
            place.store(word, Ordering::Relaxed);
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
    kernel: Kernel,
    recorder: Recorder,
    /// The collecting instance and its sequence number.
    collects: Option<(u64, u64)>,
}

impl Section {
    pub(super) fn start(kernel: Kernel, work: Work) -> Section {
        let mut collects = None;
        let traced = {
            let mut state = kernel.state();
            match (kernel.rules, work) {
                (Rules::Linux, Work::Handle(handle)) => state.collects(handle).and_then(|number| {
                    let instance = state.instances.get(&number)?;
                    collects = Some((number, instance.sequence));
                    let enabled = instance.enabled.as_ref()?;
                    // The end of the section drops records beyond the buffer's size anyway.
                    let words = instance.memory.as_ref()?.len().min(enabled.area as usize).max(1);
                    Some((memory(words as u64), enabled.mode))
                }),
                (Rules::NetBsd, Work::Source(source)) => {
                    let source = state.sources.get_mut(&(source.subsystem, source.id));
                    source.and_then(|source| Some((source.memory(), source.mode?)))
                }
                _ => None,
            }
        };
        Section { recorder: Recorder::new(kernel.rules, traced), kernel, collects }
    }

    /// Runs the part of the section that `body` records.
    pub fn run<R>(&mut self, body: impl FnOnce(&mut Recorder) -> R) -> R {
        body(&mut self.recorder)
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        let (Some((number, sequence)), Some((area, mode))) = (self.collects, &self.recorder.traced)
        else {
            return;
        };
        let state = self.kernel.state();
        let Some(instance) = state.instances.get(&number) else { return };
        let Some(memory) = &instance.memory else { return };
        if instance.sequence != sequence || instance.enabled.is_none() {
            return;
        }
        // Append as many whole records as fit.
        let stride = if *mode == Mode::Cmp { 4 } else { 1 };
        let capacity = (memory.len() - 1) / stride;
        let there = memory[0].load(Ordering::Relaxed);
        let Some(room) = usize::try_from(there).ok().and_then(|there| capacity.checked_sub(there))
        else {
            return;
        };
        let more = (area[0].load(Ordering::Relaxed) as usize).min(room);
        let (from, to) = (&area[1..], &memory[1 + there as usize * stride..]);
        for (from, to) in from.iter().zip(to).take(more * stride) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        memory[0].store(there + more as u64, Ordering::Relaxed);
    }
}
