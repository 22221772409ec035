//! The state of a fake kernel: a model of the driver, and buffers.

use crate::error::Operation;
use kcov_model::linux::{self, Linux};
use kcov_model::netbsd::{self, NetBsd};
use kcov_model::{Driver, End, Instance, Mode, T};
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

pub(super) struct State {
    pub(super) driver: Box<dyn Driver + Send>,
    /// The buffers that were needed so far.
    buffers: BTreeMap<Instance, Memory>,
    threads: HashMap<ThreadId, T>,
    started: u32,
    pub(super) open: usize,
    /// The operations to fail, and the errno for each.
    pub(super) orders: Vec<(Operation, i32)>,
}

pub(super) fn memory(words: u64) -> Memory {
    Memory((0..words).map(|_| AtomicU64::new(0)).collect())
}

impl State {
    pub(super) fn linux(comparisons: bool) -> State {
        let page = crate::sys::page_size() as u64;
        // 1 GiB.
        let kernel =
            linux::Kernel { comparisons, page, most_words: 1 << 27, ..linux::Kernel::LATEST };
        State::new(Linux::new(kernel))
    }

    pub(super) fn netbsd() -> State {
        let page = crate::sys::page_size() as u64;
        State::new(NetBsd::new(netbsd::Kernel { page, ..netbsd::Kernel::LATEST }))
    }

    fn new(driver: impl Driver + Send + 'static) -> State {
        State {
            driver: Box::new(driver),
            buffers: BTreeMap::new(),
            threads: HashMap::new(),
            started: 0,
            open: 0,
            orders: Vec::new(),
        }
    }

    /// Fails if the operation was told to fail.
    pub(super) fn obey(&mut self, operation: Operation) -> Result<(), i32> {
        match self.orders.iter().position(|(ordered, _)| *ordered == operation) {
            Some(first) => Err(self.orders.remove(first).1),
            None => Ok(()),
        }
    }

    /// The calling thread.
    pub(super) fn thread(&mut self) -> T {
        *self.threads.entry(thread::current().id()).or_insert_with(|| {
            self.started += 1;
            T(self.started)
        })
    }

    /// A buffer that has a size.
    pub(super) fn buffer(&mut self, buffer: Instance) -> Memory {
        let words = self.driver.words(buffer).unwrap_or(0);
        self.buffers.entry(buffer).or_insert_with(|| memory(words)).clone()
    }

    pub(super) fn buffers(&self) -> impl Iterator<Item = &Memory> {
        self.buffers.values()
    }

    /// The buffer and mode into which a thread is traced.
    pub(super) fn traced(&mut self, thread: T) -> Option<(Memory, Mode)> {
        self.recording(self.driver.traced(thread)?)
    }

    /// The buffer and the mode that it is enabled in.
    pub(super) fn recording(&mut self, buffer: Instance) -> Option<(Memory, Mode)> {
        let mode = self.driver.recording(buffer)?.mode;
        Some((self.buffer(buffer), mode))
    }

    pub(super) fn close(&mut self, instance: Instance) {
        self.open -= 1;
        self.driver.close(instance);
        self.forget_buffers();
    }

    fn end_thread(&mut self, thread: ThreadId) {
        if let Some(thread) = self.threads.remove(&thread) {
            self.driver.end(thread, End::Process);
            self.forget_buffers();
        }
    }

    /// Forgets the buffers that nobody can use any more.
    fn forget_buffers(&mut self) {
        self.buffers.retain(|buffer, _| self.driver.words(*buffer).is_some());
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
