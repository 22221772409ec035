//! The objects around a driver on both systems: processes, threads, descriptors, files and
//! mappings.

use crate::*;
use std::collections::{BTreeMap, BTreeSet};

/// An open file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    instance: Instance,
    access: Access,
    descriptors: u32,
}

/// A mapping of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The owner of the buffer.
    pub buffer: Instance,
    /// The arguments of mmap, with the access that is allowed now.
    pub geometry: Geometry,
    /// Whether it can be read.
    pub readable: bool,
    /// How the descriptor was opened.
    access: Access,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// All threads, including the first.
    pub threads: BTreeSet<T>,
    descriptors: BTreeMap<D, u32>,
    /// Its mappings.
    pub maps: BTreeMap<M, Mapping>,
}

/// Everything that determines a driver's answers.
#[derive(Clone, Debug)]
pub struct World<R> {
    /// The driver.
    pub driver: R,
    processes: BTreeMap<T, Process>,
    /// The process of each thread.
    threads: BTreeMap<T, T>,
    files: BTreeMap<u32, File>,
    opened_files: u32,
    /// Words stored to pages of buffers.
    stored: BTreeMap<(Instance, u64), u64>,
    /// Buffers that the kernel may have recorded into.
    recorded: BTreeSet<Instance>,
}

/// The effect of an operation on a buffer whose count is [`FULL`] before and after it.
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

/// The maximum number of threads at a time.
pub const MOST_THREADS: usize = 8;

impl<R: Driver + Clone> World<R> {
    /// One process with one thread, `T(0)`.
    #[must_use]
    pub fn new(driver: R) -> World<R> {
        let process = Process { threads: [T(0)].into(), ..Process::default() };
        World {
            driver,
            processes: [(T(0), process)].into(),
            threads: [(T(0), T(0))].into(),
            files: BTreeMap::new(),
            opened_files: 0,
            stored: BTreeMap::new(),
            recorded: BTreeSet::new(),
        }
    }

    /// The threads, each with its process.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = (T, T)> + '_ {
        self.threads.iter().map(|(&thread, &process)| (thread, process))
    }

    /// The processes, named by their first threads.
    pub fn processes(&self) -> impl ExactSizeIterator<Item = (T, &Process)> + '_ {
        self.processes.iter().map(|(&name, process)| (name, process))
    }

    /// The process of a thread.
    #[must_use]
    pub fn process_of(&self, thread: T) -> Option<T> {
        self.threads.get(&thread).copied()
    }

    fn process(&mut self, thread: T) -> &mut Process {
        let process = self.threads[&thread];
        self.processes.get_mut(&process).expect("the process of a thread")
    }

    fn look(&self, thread: T) -> Option<&Process> {
        self.processes.get(self.threads.get(&thread)?)
    }

    /// The descriptors of a thread's process.
    pub fn descriptors(&self, thread: T) -> impl Iterator<Item = D> + '_ {
        self.look(thread).into_iter().flat_map(|process| process.descriptors.keys().copied())
    }

    /// The mappings of a thread's process.
    pub fn maps(&self, thread: T) -> impl Iterator<Item = (M, &Mapping)> + '_ {
        let maps = self.look(thread).into_iter().flat_map(|process| process.maps.iter());
        maps.map(|(&name, mapping)| (name, mapping))
    }

    fn file(&self, thread: T, descriptor: D) -> Option<&File> {
        self.files.get(self.look(thread)?.descriptors.get(&descriptor)?)
    }

    /// The instance behind a descriptor.
    #[must_use]
    pub fn instance(&self, thread: T, descriptor: D) -> Option<Instance> {
        self.file(thread, descriptor).map(|file| file.instance)
    }

    /// The instance behind a descriptor, and how it was opened.
    #[must_use]
    pub fn opened(&self, thread: T, descriptor: D) -> Option<(Instance, Access)> {
        self.file(thread, descriptor).map(|file| (file.instance, file.access))
    }

    /// The current recording into the mapped buffer.
    #[must_use]
    pub fn recording(&self, thread: T, map: M) -> Option<Recording> {
        self.driver.recording(self.look(thread)?.maps.get(&map)?.buffer)
    }

    /// Whether the operation is possible: the objects that it uses exist, those that it creates do
    /// not, and it does no harm.
    #[must_use]
    pub fn possible(&self, operation: &Operation) -> bool {
        let Some(process) = self.look(operation.thread()) else { return false };
        let has = |d: &D| process.descriptors.contains_key(d);
        let free = |d: &D| !has(d);
        let shows = |m: &M| process.maps.get(m);
        let room = |new: &T| self.threads.len() < MOST_THREADS && !self.threads.contains_key(new);
        let harmless = |m: &Mapping, count| {
            let recording = self.driver.recording(m.buffer);
            m.geometry.offset == 0
                && m.readable
                && recording.is_none_or(|r| self.driver.counted(r, count).is_some())
        };
        match operation {
            Operation::Open { descriptor, .. } => free(descriptor),
            Operation::Duplicate { descriptor, new, .. } => has(descriptor) && free(new),
            Operation::Pass { descriptor, to, new, .. } => {
                let to = self.look(*to);
                has(descriptor) && to.is_some_and(|to| !to.descriptors.contains_key(new))
            }
            Operation::Close { descriptor, .. }
            | Operation::Ask { descriptor, .. }
            | Operation::Misuse { descriptor, .. } => has(descriptor),
            Operation::Map { descriptor, map, geometry, .. } => {
                has(descriptor) && shows(map).is_none() && self.driver.outlives(geometry)
            }
            Operation::Unmap { map, .. }
            | Operation::Remap { map, .. }
            | Operation::Protect { map, .. } => shows(map).is_some(),
            Operation::Load { map, .. } => shows(map).is_some_and(|m| m.readable),
            Operation::Store { map, .. } => shows(map).is_some_and(|m| m.geometry.writable),
            Operation::Background { map, count, .. } => shows(map)
                .is_some_and(|m| m.geometry.writable && !m.geometry.private && harmless(m, *count)),
            Operation::Trace { map, count, .. } => shows(map).is_some_and(|m| harmless(m, *count)),
            Operation::StartThread { new, .. } | Operation::Fork { new, .. } => room(new),
            Operation::EndThread { thread } => self.threads[thread] != *thread,
            Operation::Execute { .. } | Operation::Exit { .. } | Operation::Kill { .. } => true,
        }
    }

    /// All possible outcomes of the operation with the worlds afterwards. There are several if the
    /// kernel may lag behind.
    #[must_use]
    pub fn step(mut self, operation: &Operation) -> Vec<(Outcome, World<R>)> {
        let late = match operation {
            Operation::Ask { thread, descriptor, .. } => {
                let mut late = self.clone();
                let instance = self.instance(*thread, *descriptor).expect("a descriptor");
                late.driver.catch_up(instance).then_some(late)
            }
            _ => None,
        };
        let outcome = self.apply(operation);
        let mut all = vec![(outcome, self)];
        if let Some(mut late) = late {
            let outcome = late.apply(operation);
            // If both outcomes are equal, the kernel may still lag behind.
            if outcome != all[0].0 {
                all.push((outcome, late));
            }
        }
        all
    }

    /// All reasons to refuse the operation, in the order of the driver's tests. Only ioctls and mmap
    /// have several.
    #[must_use]
    pub fn refusals(&self, operation: &Operation) -> Vec<&'static Reason> {
        match operation {
            Operation::Ask { thread, descriptor, .. }
            | Operation::Map { thread, descriptor, .. } => {
                let asked = self.asked(*thread, *descriptor, operation);
                asked.map_or_else(Vec::new, |asked| self.driver.refusals(&asked))
            }
            _ => Vec::new(),
        }
    }

    fn asked<'o>(&self, thread: T, descriptor: D, operation: &'o Operation) -> Option<Asked<'o>> {
        let (instance, access) = self.opened(thread, descriptor)?;
        Some(Asked { instance, access, operation })
    }

    /// Applies a possible operation.
    fn apply(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Open { thread, descriptor, access } => {
                let instance = self.driver.open();
                let file = File { instance, access: *access, descriptors: 0 };
                self.files.insert(self.opened_files, file);
                self.refer(*thread, *descriptor, self.opened_files);
                self.opened_files += 1;
            }
            Operation::Duplicate { thread, descriptor, new } => {
                let file = self.process(*thread).descriptors[descriptor];
                self.refer(*thread, *new, file);
            }
            Operation::Pass { thread, descriptor, to, new } => {
                let file = self.process(*thread).descriptors[descriptor];
                self.refer(*to, *new, file);
            }
            Operation::Close { thread, descriptor } => {
                let file = self.process(*thread).descriptors.remove(descriptor);
                self.release(file.expect("a descriptor"));
            }
            Operation::Ask { thread, descriptor, .. } => {
                let asked = self.asked(*thread, *descriptor, operation).expect("a descriptor");
                let outcome = self.driver.ask(&asked);
                self.note_recording();
                return outcome;
            }
            Operation::Misuse { thread, descriptor, call } => {
                let access = self.file(*thread, *descriptor).expect("a descriptor").access;
                return Outcome::Refused(self.driver.misuse(access, *call));
            }
            Operation::Map { thread, descriptor, map, geometry } => {
                let asked = self.asked(*thread, *descriptor, operation).expect("a descriptor");
                let outcome = self.driver.ask(&asked);
                if outcome == Outcome::Done {
                    let buffer = self.driver.buffer(asked.instance);
                    let (geometry, access) = (*geometry, asked.access);
                    let mapping = Mapping { buffer, geometry, readable: true, access };
                    self.process(*thread).maps.insert(*map, mapping);
                }
                return outcome;
            }
            Operation::Unmap { thread, map } => {
                self.process(*thread).maps.remove(map);
            }
            Operation::Remap { how, .. } => return self.driver.remap(*how),
            Operation::Protect { thread, map, protection } => {
                let Mapping { geometry, access, .. } = self.process(*thread).maps[map].clone();
                let writable = *protection == Protection::ReadWrite;
                if writable && !geometry.writable {
                    if let Some(errno) = self.driver.adds_access(access, &geometry) {
                        return Outcome::Refused(errno);
                    }
                }
                let mapping = self.process(*thread).maps.get_mut(map).expect("a mapping");
                mapping.geometry.writable = writable;
                mapping.readable = *protection != Protection::None;
            }
            Operation::Trace { thread, map, count } => return self.trace(*thread, *map, *count),
            Operation::Background { thread, map, work, count } => {
                let buffer = self.process(*thread).maps[map].buffer;
                let own = self.driver.recording(buffer).is_some_and(|r| r.thread == Some(*thread));
                return if own {
                    Outcome::Anything
                } else {
                    self.driver.background(*thread, *work, buffer, *count)
                };
            }
            Operation::Store { thread, map, word } => {
                let Mapping { buffer, geometry, .. } = self.process(*thread).maps[map].clone();
                // A later record may overwrite it.
                if !geometry.private && self.driver.recording(buffer).is_none() {
                    self.stored.insert((buffer, self.first_page(&geometry)), *word);
                }
            }
            Operation::Load { thread, map } => return self.load(*thread, *map),
            Operation::StartThread { thread, new } => {
                self.driver.start(*thread, *new);
                self.threads.insert(*new, self.threads[thread]);
                self.process(*thread).threads.insert(*new);
            }
            Operation::EndThread { thread } => {
                self.process(*thread).threads.remove(thread);
                self.threads.remove(thread);
                self.driver.end(*thread, End::Thread);
            }
            Operation::Fork { thread, new } => {
                self.driver.start(*thread, *new);
                let mut child = self.process(*thread).clone();
                child.threads = [*new].into();
                for file in child.descriptors.values() {
                    self.files.get_mut(file).expect("a file").descriptors += 1;
                }
                self.processes.insert(*new, child);
                self.threads.insert(*new, *new);
            }
            Operation::Execute { thread, keep } => self.execute(*thread, *keep),
            Operation::Exit { thread } | Operation::Kill { thread } => self.exit(*thread),
        }
        Outcome::Done
    }

    fn refer(&mut self, thread: T, descriptor: D, file: u32) {
        self.files.get_mut(&file).expect("a file").descriptors += 1;
        self.process(thread).descriptors.insert(descriptor, file);
    }

    fn release(&mut self, number: u32) {
        let file = self.files.get_mut(&number).expect("a file");
        file.descriptors -= 1;
        if file.descriptors == 0 {
            let instance = file.instance;
            self.files.remove(&number);
            self.driver.close(instance);
        }
    }

    /// Forgets the stored words of a buffer when recording into it starts.
    fn note_recording(&mut self) {
        for buffer in self.reached() {
            if self.driver.recording(buffer).is_some() {
                self.recorded.insert(buffer);
                self.stored.retain(|(other, _), _| *other != buffer);
            }
        }
    }

    fn trace(&mut self, thread: T, map: M, count: u64) -> Outcome {
        let Mapping { buffer, geometry, .. } = self.process(thread).maps[&map].clone();
        match self.driver.recording(buffer) {
            Some(recording) if recording.thread == Some(thread) => {
                if geometry.private || !geometry.writable {
                    return Outcome::Anything;
                }
                self.driver.counted(recording, count).expect("it is possible")
            }
            Some(_) if geometry.private => Outcome::Anything,
            _ => Outcome::Unchanged,
        }
    }

    fn load(&mut self, thread: T, map: M) -> Outcome {
        let Mapping { buffer, geometry, .. } = self.process(thread).maps[&map].clone();
        if geometry.private || self.driver.recording(buffer).is_some() {
            return Outcome::Anything;
        }
        match self.stored.get(&(buffer, self.first_page(&geometry))) {
            Some(word) => Outcome::Word(*word),
            None if self.recorded.contains(&buffer) || self.driver.outlives_devices(buffer) => {
                Outcome::Anything
            }
            None => Outcome::Word(0),
        }
    }

    fn execute(&mut self, thread: T, keep: bool) {
        let process = self.threads[&thread];
        let others = self.process(thread).threads.clone();
        for other in others.into_iter().filter(|&other| other != thread) {
            self.threads.remove(&other);
            self.driver.end(other, End::Execution);
        }
        let mut process = self.processes.remove(&process).expect("a process");
        process.threads = [thread].into();
        process.maps.clear();
        let closed = if keep { BTreeMap::new() } else { std::mem::take(&mut process.descriptors) };
        // A process has the name of its first thread, and now this is the first.
        self.threads.insert(thread, thread);
        self.processes.insert(thread, process);
        for file in closed.into_values() {
            self.release(file);
        }
    }

    fn exit(&mut self, thread: T) {
        let process = self.processes.remove(&self.threads[&thread]).expect("a process");
        for file in process.descriptors.into_values() {
            self.release(file);
        }
        for thread in process.threads {
            self.threads.remove(&thread);
            self.driver.end(thread, End::Process);
        }
    }

    /// The first page of the buffer that a mapping shows.
    fn first_page(&self, geometry: &Geometry) -> u64 {
        geometry.offset as u64 / self.driver.page()
    }

    /// The effect of a successful operation on the contents of this buffer. Everything else in all
    /// buffers stays unchanged; the next state covers sizes, modes, threads, handles and mappings.
    #[must_use]
    pub fn touch(&self, operation: &Operation, buffer: Instance) -> Touch {
        let thread = operation.thread();
        let shows = |map: &M| {
            let mapping = self.look(thread)?.maps.get(map)?;
            (mapping.buffer == buffer && !mapping.geometry.private).then_some(mapping.geometry)
        };
        let recording = self.driver.recording(buffer);
        let works = matches!(operation, Operation::Background { .. });
        match operation {
            Operation::Store { map, word, .. } => shows(map).map_or(Touch::Nothing, |geometry| {
                let page_words = self.driver.page() / WORD;
                Touch::Word((self.first_page(&geometry) + 1) * page_words - 1, *word)
            }),
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
        let opened = self.files.values().map(|file| file.instance);
        opened.chain(all.map(|mapping| mapping.buffer)).collect()
    }

    /// A device's buffer and a mapping of all of it, writable if the descriptor allows it. Of the
    /// large buffer that outlives devices, the mapping shows the first page.
    #[must_use]
    pub fn whole(&self, thread: T, descriptor: D) -> Option<(Instance, Geometry)> {
        let buffer = self.driver.buffer(self.instance(thread, descriptor)?);
        let page = self.driver.page();
        let all = (self.driver.words(buffer)? * WORD).next_multiple_of(page);
        [true, false].into_iter().find_map(|writable| {
            let geometry = Geometry::of(all, writable);
            let operation = Operation::Map { thread, descriptor, map: M(0), geometry };
            let bytes = if self.driver.outlives_devices(buffer) { page } else { all };
            let mapped = self.refusals(&operation).is_empty();
            mapped.then(|| (buffer, Geometry::of(bytes, writable)))
        })
    }

    /// Whether no thread can record there except the one that the model names.
    #[must_use]
    pub fn at_rest(&self, buffer: Instance) -> bool {
        !self.driver.clone().catch_up(buffer)
    }
}
