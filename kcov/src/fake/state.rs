//! The state of a fake kernel, common to both systems.

use super::Rules;
use super::record::Recorder;
use crate::error::Operation;
use kcov_sys::netbsd::KCOV_BUF_MAX_ENTRIES;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, ThreadId};

/// The words of a buffer.
#[derive(Clone)]
pub(crate) struct Memory(Arc<[AtomicU64]>);

impl Deref for Memory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// Shows the number of words, not the words: there may be millions.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} words]", self.len())
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) instances: BTreeMap<u64, Instance>,
    pub(super) sources: BTreeMap<(u64, u64), Source>,
    tasks: HashMap<ThreadId, Task>,
    opened: u64,
    /// Whether comparison mode is missing.
    pub(super) lacks_comparisons: bool,
    /// The operations to fail, and the errno for each.
    pub(super) orders: Vec<(Operation, i32)>,
}

/// An open device.
#[derive(Debug, Default)]
pub(super) struct Instance {
    pub(super) memory: Option<Memory>,
    pub(super) enabled: Option<Enabled>,
    /// Number of times it was enabled or disabled. Identifies late sections.
    pub(super) sequence: u64,
    pub(super) closed: bool,
    /// The source it is attached to.
    pub(super) source: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(super) struct Enabled {
    pub(super) owner: ThreadId,
    pub(super) mode: Mode,
    /// The handles of remote coverage; `None` if the owner itself is traced.
    pub(super) handles: Option<Vec<u64>>,
    /// Maximum number of words in one section.
    pub(super) area: u32,
}

/// The kind of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    None,
    Pc,
    Cmp,
}

/// What a kernel stores about a thread.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) local: Option<u64>,
    pub(super) remote: Option<u64>,
}

/// A remote source of NetBSD.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Large, so allocated on first use.
    memory: Option<Memory>,
    pub(super) mode: Option<Mode>,
}

impl Source {
    pub(super) fn memory(&mut self) -> Memory {
        self.memory.get_or_insert_with(|| memory(KCOV_BUF_MAX_ENTRIES)).clone()
    }
}

pub(super) fn memory(words: u64) -> Memory {
    Memory((0..words).map(|_| AtomicU64::new(0)).collect())
}

/// The size of a mapping of this many bytes.
pub(super) fn whole_pages(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(crate::sys::page_size()).unwrap_or(usize::MAX)
}

impl State {
    /// Fails if the operation was told to fail.
    pub(super) fn obey(&mut self, operation: Operation) -> Result<(), i32> {
        match self.orders.iter().position(|(ordered, _)| *ordered == operation) {
            Some(first) => Err(self.orders.remove(first).1),
            None => Ok(()),
        }
    }

    pub(super) fn open(&mut self) -> u64 {
        self.opened += 1;
        self.instances.insert(self.opened, Instance::default());
        self.opened
    }

    /// All buffers.
    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        let own = self.instances.values().filter_map(|instance| instance.memory.as_ref());
        own.chain(self.sources.values().filter_map(|source| source.memory.as_ref()))
    }

    pub(super) fn instance(&mut self, instance: u64) -> &mut Instance {
        self.instances.entry(instance).or_default()
    }

    /// The state of the calling thread.
    pub(super) fn task(&mut self) -> &mut Task {
        self.tasks.entry(thread::current().id()).or_default()
    }

    /// Ends the tracing or remote coverage of an instance.
    pub(super) fn reset(&mut self, instance: u64) {
        let state = self.instance(instance);
        state.sequence += 1;
        if let Some(enabled) = state.enabled.take() {
            let task = self.tasks.entry(enabled.owner).or_default();
            let place = if enabled.handles.is_some() { &mut task.remote } else { &mut task.local };
            if *place == Some(instance) {
                *place = None;
            }
        }
        self.forget(instance);
    }

    pub(super) fn close(&mut self, instance: u64) {
        if let Some(source) = self.instance(instance).source.take() {
            self.disable_source(source);
        }
        self.instance(instance).closed = true;
        self.forget(instance);
    }

    pub(super) fn disable_source(&mut self, source: (u64, u64)) -> bool {
        self.sources.get_mut(&source).is_some_and(|source| source.mode.take().is_some())
    }

    /// Removes an instance that is closed and not enabled, because nobody can use it any more.
    fn forget(&mut self, instance: u64) {
        if self.instances.get(&instance).is_some_and(|i| i.closed && i.enabled.is_none()) {
            self.instances.remove(&instance);
        }
    }

    /// A recorder for the calling thread's trace.
    pub(super) fn recorder(&mut self, rules: Rules) -> Recorder {
        let traced = self.task().local.and_then(|instance| {
            let Instance { memory, enabled, .. } = self.instances.get(&instance)?;
            Some((memory.clone()?, enabled.as_ref()?.mode))
        });
        Recorder::new(rules, traced)
    }

    fn end_thread(&mut self, thread: ThreadId) {
        if let Some(task) = self.tasks.remove(&thread) {
            task.local.into_iter().chain(task.remote).for_each(|instance| self.reset(instance));
        }
    }
}

/// Disables everything that the calling thread has enabled when the thread ends.
pub(super) fn end_with_thread(state: &Arc<Mutex<State>>) {
    struct End(ThreadId, Vec<Weak<Mutex<State>>>);

    impl Drop for End {
        fn drop(&mut self) {
            for state in self.1.iter().filter_map(Weak::upgrade) {
                state.lock().unwrap_or_else(PoisonError::into_inner).end_thread(self.0);
            }
        }
    }

    thread_local! {
        static END: RefCell<End> = RefCell::new(End(thread::current().id(), Vec::new()));
    }
    END.with_borrow_mut(|End(_, kernels)| {
        let state = Arc::downgrade(state);
        if !kernels.iter().any(|other| other.ptr_eq(&state)) {
            kernels.push(state);
        }
    });
}
