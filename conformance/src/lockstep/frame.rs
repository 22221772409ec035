//! Compares all state with the model after each operation, not only what the operation mentions.
//!
//! The driving process, which is never traced, maps each buffer. It keeps the count beyond the end
//! of the buffer, so the kernel records nothing and every word can be compared. The count is 0 only
//! while a thread is asked whether it is traced, and into which buffer.

use super::channel::Order;
use super::real::Real;
use super::worker::{digest, mapped};
use crate::raw::{Map, page_size};
use crate::system::lockstep::{self as system, Driver};
use kcov_model::{Driver as _, *};
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of times a thread is scheduled until it sees that its buffer is full.
const PATIENCE: u32 = 1000;

/// Sections are tested after one in this many operations.
fn interval(work: Work) -> usize {
    match work {
        // Each time, the kernel starts a thread.
        Work::Worker => 16,
        Work::SoftInterrupt => 4,
    }
}

/// All buffers with their expected words.
pub(super) struct Frame {
    buffers: BTreeMap<Instance, Buffer>,
    works: Vec<Work>,
    /// Tests all threads after each operation.
    thorough: bool,
    turn: usize,
}

impl Frame {
    pub fn new(works: Vec<Work>, thorough: bool) -> Frame {
        Frame { buffers: BTreeMap::new(), works, thorough, turn: 0 }
    }

    /// Unmaps the buffers that the operation frees, because this mapping would keep them.
    pub fn before(&mut self, after: &World<Driver>) {
        let reached = after.reached();
        let stays =
            |instance| reached.contains(&instance) || after.driver.outlives_devices(instance);
        self.buffers.retain(|instance, _| stays(*instance));
    }

    pub fn after(
        &mut self,
        real: &mut Real<'_>,
        [before, after]: [&World<Driver>; 2],
        operation: &Operation,
        seen: &Outcome,
    ) -> Kept {
        self.turn += 1;
        self.buffers(real, [before, after], operation, seen)?;
        self.new_buffer(real, after, operation)?;
        real.shows(after.driver.shown())?;
        for thread in self.chosen(after, operation) {
            self.traced(real, after, thread)?;
            self.rest(real, after, thread)?;
            for work in self.due() {
                self.collected(real, after, thread, work)?;
            }
        }
        Ok(())
    }

    /// The acting thread, and one other in turn.
    fn chosen(&self, world: &World<Driver>, operation: &Operation) -> Vec<T> {
        let all: Vec<T> = world.threads().map(|(thread, _)| thread).collect();
        let turn = all.get(self.turn % all.len().max(1)).copied();
        let wanted =
            |thread: &T| self.thorough || *thread == operation.thread() || Some(*thread) == turn;
        all.into_iter().filter(wanted).collect()
    }

    /// The work to test after this operation.
    fn due(&self) -> Vec<Work> {
        let due = |work: &Work| self.thorough || self.turn % interval(*work) == 0;
        self.works.iter().copied().filter(due).collect()
    }

    fn buffers(
        &mut self,
        real: &mut Real<'_>,
        [before, after]: [&World<Driver>; 2],
        operation: &Operation,
        seen: &Outcome,
    ) -> Kept {
        let mut restless = Vec::new();
        for (&instance, buffer) in &mut self.buffers {
            let recording = before.driver.recording(instance);
            if !buffer.map.is_writable() {
                if recording.or(after.driver.recording(instance)).is_some() {
                    buffer.words = buffer.map.copy(0, buffer.words.len());
                }
                buffer.compare(&(0..0))?;
                continue;
            }
            let free = match (before.touch(operation, instance), seen) {
                (Touch::Nothing, _) => 0..0,
                (Touch::Word(index, word), _) => {
                    // Of some buffers only the first page is mapped.
                    if let Some(expected) = buffer.words.get_mut(index as usize) {
                        *expected = word;
                    }
                    0..0
                }
                (Touch::Own(recording), Outcome::Counted(from, to))
                    if matches!(operation, Operation::Trace { .. }) =>
                {
                    records(recording, *from, *to)
                }
                (Touch::Own(_), _) => 1..buffer.words.len(),
                (Touch::Sections(recording), Outcome::Counted(from, to)) => {
                    collected(recording, *from, *to)
                }
                (Touch::Sections(_), _) => 0..0,
                (Touch::Others, _) => {
                    restless.extend(recording.and_then(|r| r.thread));
                    0..buffer.words.len()
                }
            };
            if free.start == 0 && !free.is_empty() {
                buffer.hold();
            }
            buffer.compare(&free)?;
        }
        // A thread may still finish a record that it started before it saw the full buffer.
        restless.retain(|&thread| after.process_of(thread).is_some());
        restless.into_iter().try_for_each(|thread| self.rest(real, after, thread))
    }

    fn new_buffer(
        &mut self,
        real: &mut Real<'_>,
        world: &World<Driver>,
        operation: &Operation,
    ) -> Kept {
        let Operation::Ask { thread, descriptor, .. } = *operation else { return Ok(()) };
        let Some((instance, geometry)) = world.whole(thread, descriptor) else { return Ok(()) };
        if self.buffers.contains_key(&instance) {
            return Ok(());
        }
        let device = real.lent(thread, descriptor)?;
        let map = match mapped(&device, &geometry) {
            Ok(map) => map,
            Err(errno) => return changed(format!("the whole buffer is not mapped: {errno}")),
        };
        let unknown = world.driver.outlives_devices(instance);
        self.buffers.insert(instance, Buffer::of(instance, map, unknown)?);
        Ok(())
    }

    /// The buffers into which only this thread, or a kernel thread, records.
    fn open_to(&self, world: &World<Driver>, thread: T) -> Vec<(&Buffer, Instance)> {
        let open = |instance| {
            let recording = world.driver.recording(instance);
            world.at_rest(instance)
                && recording.is_none_or(|r| r.thread.is_none_or(|t| t == thread))
        };
        let all = self.buffers.iter().filter(|(i, b)| b.map.is_writable() && open(**i));
        all.map(|(&instance, buffer)| (buffer, instance)).collect()
    }

    /// Tests whether the thread is traced, into which buffer, and in which mode.
    fn traced(&self, real: &mut Real<'_>, world: &World<Driver>, thread: T) -> Kept {
        let open = self.open_to(world, thread);
        open.iter().for_each(|(buffer, _)| buffer.map.reset());
        real.asked(thread, &Order::Call)?;
        let seen: Vec<_> = open.iter().map(|(b, _)| (b.map.count(), b.map.load(1))).collect();
        open.iter().for_each(|(buffer, _)| buffer.hold());
        for ((_, instance), (count, first)) in open.into_iter().zip(seen) {
            let own = world.driver.recording(instance).filter(|r| r.thread == Some(thread));
            let (mode, most) = own.map_or((Mode::None, 0), |r| (r.mode, r.mode.capacity(r.words)));
            if count > most || (count == 0) != (most == 0) {
                return changed(format!(
                    "{thread:?} has recorded {count}, in a buffer where it can record {most}"
                ));
            }
            // A comparison's type is a small number; a program counter is not.
            if count > 0 && (first < 8) != (mode == Mode::Cmp) {
                return changed(format!("{thread:?} records {first:#x} in mode {mode:?}"));
            }
        }
        Ok(())
    }

    /// Makes the thread see that its buffer is full, so that it stops recording, and compares one
    /// of its mappings with this process's.
    fn rest(&self, real: &mut Real<'_>, world: &World<Driver>, thread: T) -> Kept {
        let of = |world: &World<Driver>, i| world.driver.recording(i).and_then(|r| r.thread);
        let writable = self.buffers.iter().filter(|(_, buffer)| buffer.map.is_writable());
        let own = writable.filter(|(instance, _)| of(world, **instance) == Some(thread));
        let own: Vec<_> = own.map(|(_, buffer)| buffer).collect();
        let map = self.shown(world, thread);
        if own.is_empty() && map.is_none() {
            return Ok(());
        }
        for _ in 0..PATIENCE {
            own.iter().for_each(|buffer| buffer.hold());
            let said = real.asked(thread, &Order::Look(map.as_ref().map(|m| m.0)))?;
            if !own.iter().all(|buffer| buffer.is_held()) {
                continue;
            }
            if let Some((_, buffer, range)) = map {
                let wanted = digest(&buffer.map, range);
                if said != Outcome::Word(wanted) {
                    return changed(format!("a mapping shows {said:?}, not {wanted:#x}"));
                }
            }
            return own.into_iter().try_for_each(|buffer| buffer.compare(&(1..buffer.words.len())));
        }
        changed(format!("{thread:?} stores counts beyond the end of its buffer"))
    }

    /// A mapping of the thread, and the words that it shows.
    fn shown(&self, world: &World<Driver>, thread: T) -> Option<(M, &Buffer, Range<usize>)> {
        let all: Vec<_> =
            world.maps(thread).filter(|(_, m)| m.readable && !m.geometry.private).collect();
        let (name, mapping) = all.get(self.turn % all.len().max(1))?;
        let buffer = self.buffers.get(&mapping.buffer)?;
        let recorded = world.driver.recording(mapping.buffer).is_some();
        let first = mapping.geometry.offset as usize / WORD as usize;
        let words = (mapping.geometry.bytes.next_multiple_of(page_size() as u64) / WORD) as usize;
        let whole = mapping.geometry.offset % page_size() as i64 == 0
            && first + words <= buffer.words.len()
            && (buffer.map.is_writable() || !recorded);
        whole.then_some((*name, buffer, first..first + words))
    }

    /// Tests whether the kernel records this work for the thread, and where.
    fn collected(&self, real: &mut Real<'_>, world: &World<Driver>, thread: T, work: Work) -> Kept {
        let mut open = self.open_to(world, thread);
        open.retain(|(_, instance)| {
            world.driver.recording(*instance).is_none_or(|r| r.thread.is_none())
        });
        let most = |recording: Option<Recording>| recording.map_or(0, |r| r.mode.capacity(r.words));
        // Leaves room for few records, or for all.
        let room = (self.turn / interval(work) % 4) as u64;
        let start = |recording| if room == 0 { 0 } else { most(recording).saturating_sub(room) };
        for (buffer, instance) in &open {
            buffer.map.store(0, start(world.driver.recording(*instance)));
        }
        system::quietly(&world.driver, work, || real.asked(thread, &Order::Work(work)))?;
        for (buffer, instance) in open {
            let recording = world.driver.recording(instance);
            let (from, to) = (start(recording), buffer.map.swap(0, FULL));
            let expected = world.driver.background(thread, work, instance, from);
            if !expected.allows(&Outcome::Counted(from, to)) || to > most(recording) {
                return changed(format!(
                    "{work:?} for {thread:?}: the count was {from}, is {to}, not {expected:?}"
                ));
            }
            buffer.compare(&recording.map_or(0..0, |r| collected(r, from, to)))?;
        }
        Ok(())
    }
}

pub type Kept = Result<(), Outcome>;

pub fn changed<T>(what: String) -> Result<T, Outcome> {
    Err(Outcome::Other(what))
}

struct Buffer {
    map: Map,
    words: Vec<u64>,
}

impl Buffer {
    fn of(instance: Instance, map: Map, unknown: bool) -> Result<Buffer, Outcome> {
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
    fn compare(&self, free: &Range<usize>) -> Kept {
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

    fn hold(&self) {
        self.map.store(0, FULL);
    }

    fn is_held(&self) -> bool {
        self.map.count() == FULL
    }
}

/// The words that sections change when the count becomes this.
fn collected(recording: Recording, from: u64, to: u64) -> Range<usize> {
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
fn records(recording: Recording, from: u64, to: u64) -> Range<usize> {
    let each = recording.mode.stride();
    if to > recording.mode.capacity(recording.words) || from > to {
        // The count overflowed and restarted, so every record may have changed.
        return 1..recording.words as usize;
    }
    let place = |count| (1 + count * each) as usize;
    place(from)..place(to)
}
