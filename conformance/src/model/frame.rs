//! The effect of each operation on the contents of buffers. Everything else in all buffers stays
//! unchanged.
//!
//! The model's next state covers the rest: sizes, modes, traced threads, handles, mappings.

use super::{Driver, Geometry, Instance, M, Mapping, Operation, Recording, T, WORD, World, page};
use std::collections::BTreeSet;

/// The effect of an operation on a buffer whose count is [`FULL`](super::FULL) before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Nothing.
    Nothing,
    /// Stores this word: index and value.
    Word(u64, u64),
    /// Records the acting thread.
    Own(Recording),
    /// Collects sections.
    Sections(Recording),
    /// Lets others record.
    Others,
}

impl<R: Driver> World<R> {
    /// The effect of a successful operation on this buffer.
    #[must_use]
    pub fn touch(&self, operation: &Operation, buffer: Instance) -> Touch {
        let thread = operation.thread();
        let shows = |map: &M| {
            let shared = |m: &Mapping| m.buffer == buffer && !m.geometry.private;
            self.maps(thread).find(|(name, m)| name == map && shared(m)).map(|(_, m)| m.geometry)
        };
        let recording = self.driver.recording(buffer);
        let works = matches!(operation, Operation::Background { .. });
        match operation {
            Operation::Store { map, word, .. } => match shows(map) {
                Some(geometry) => Touch::Word(last_of_page(&geometry), *word),
                None => Touch::Nothing,
            },
            Operation::Trace { map, .. } | Operation::Background { map, .. } => {
                match recording.filter(|_| shows(map).is_some_and(|geometry| geometry.writable)) {
                    None => Touch::Nothing,
                    Some(r) if r.thread == Some(thread) => Touch::Own(r),
                    Some(r) if r.thread.is_none() && works => Touch::Sections(r),
                    Some(_) => Touch::Others,
                }
            }
            _ => Touch::Nothing,
        }
    }

    /// The instances with a descriptor or a mapping.
    #[must_use]
    pub fn reached(&self) -> BTreeSet<Instance> {
        let all = self.processes().flat_map(|(_, process)| process.maps.values());
        self.instances().chain(all.map(|mapping| mapping.buffer)).collect()
    }

    /// A device's buffer and a mapping of all of it, writable if the descriptor allows it. Of the
    /// large buffer that outlives devices, the mapping shows the first page.
    #[must_use]
    pub fn whole(&self, thread: T, descriptor: super::D) -> Option<(Instance, Geometry)> {
        let (instance, access) = self.opened(thread, descriptor)?;
        let all = (self.driver.words(instance)? * WORD).next_multiple_of(page());
        let mapped = |writable| {
            let geometry =
                |bytes| Geometry { bytes, offset: 0, writable, executable: false, private: false };
            let buffer = self.driver.map(instance, access, &geometry(all)).ok()?;
            let bytes = if self.driver.outlives_devices(buffer) { page() } else { all };
            Some((buffer, geometry(bytes)))
        };
        [true, false].into_iter().find_map(mapped)
    }

    /// Whether no thread can record there except the one that the model names.
    #[must_use]
    pub fn at_rest(&self, buffer: Instance) -> bool {
        self.driver.late(buffer).is_none()
    }
}

/// The last word of the first page of a mapping, as an index into the buffer.
fn last_of_page(geometry: &Geometry) -> u64 {
    (geometry.offset as u64 / page() + 1) * (page() / WORD) - 1
}
