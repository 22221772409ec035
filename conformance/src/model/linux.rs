//! The Linux driver, `kernel/kcov.c`.

use super::{
    Access, Call, Driver, End, Geometry, Handle, Instance, Memory, Mode, Outcome, PAGE, Recording,
    Remap, Remote, Request, T, WORD,
};
use crate::declare::Feature;
use std::collections::BTreeMap;

/// What a kernel may have or lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Comparison mode is built.
    pub comparisons: bool,
    /// Comparison mode does not trust the count.
    pub bounds_count: bool,
    /// A thread may be traced and collect remotely at once, with two instances.
    pub local_and_remote: bool,
}

impl Kernel {
    /// As a target declares it.
    #[must_use]
    pub fn of(features: &[Feature]) -> Kernel {
        Kernel {
            comparisons: features.contains(&Feature::Comparisons),
            bounds_count: features.contains(&Feature::CmpBoundCheck),
            local_and_remote: features.contains(&Feature::LocalAndRemote),
        }
    }
}

/// `struct kcov`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kcov {
    /// Its size in words, once it is sized.
    words: Option<u64>,
    enabled: Option<Enabled>,
    /// No descriptor is left.
    closed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Enabled {
    owner: T,
    mode: Mode,
    remote: Option<Section>,
}

/// What is collected remotely.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    area: u32,
    handles: Vec<Handle>,
}

/// What `struct task_struct` has of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Task {
    local: Option<Instance>,
    remote: Option<Instance>,
    /// What is handed on to those who work on its behalf.
    handle: Option<Handle>,
}

/// The driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linux {
    kernel: Kernel,
    opened: u32,
    instances: BTreeMap<Instance, Kcov>,
    tasks: BTreeMap<T, Task>,
}

/// `INT_MAX / sizeof(unsigned long)`.
const MOST_WORDS: u64 = 0x7fff_ffff / WORD;
/// `KCOV_REMOTE_MAX_HANDLES`.
const MOST_HANDLES: usize = 256;
/// How many good common handles there are, and how many of USB, besides those of `fill`.
pub const GOOD: u16 = 4;
/// The first of the handles that `fill` adds.
pub const FILL: u16 = 512;

const BUSY: Outcome = Outcome::Refused("EBUSY");
const INVALID: Outcome = Outcome::Refused("EINVAL");

impl Linux {
    /// A driver that nobody uses.
    #[must_use]
    pub fn new(kernel: Kernel) -> Linux {
        Linux { kernel, opened: 0, instances: BTreeMap::new(), tasks: BTreeMap::new() }
    }

    fn instance(&mut self, instance: Instance) -> &mut Kcov {
        self.instances.get_mut(&instance).expect("an open instance")
    }

    fn task(&mut self, thread: T) -> &mut Task {
        self.tasks.entry(thread).or_default()
    }

    /// `kcov_ioctl`, `KCOV_INIT_TRACE`.
    fn size(&mut self, instance: Instance, words: u64) -> Outcome {
        if !(2..=MOST_WORDS).contains(&words) {
            return INVALID;
        }
        let kcov = self.instance(instance);
        if kcov.words.is_some() {
            return BUSY;
        }
        kcov.words = Some(words);
        Outcome::Done
    }

    /// The part that both ways to enable have in common: the instance has to be ready.
    fn ready(&mut self, instance: Instance) -> bool {
        let kcov = self.instance(instance);
        kcov.words.is_some() && kcov.enabled.is_none()
    }

    /// `kcov_get_mode`.
    fn mode(&self, number: u64) -> Result<Mode, Outcome> {
        match number {
            0 => Ok(Mode::Pc),
            1 if self.kernel.comparisons => Ok(Mode::Cmp),
            1 => Err(Outcome::Refused("ENOTSUPP")),
            _ => Err(INVALID),
        }
    }

    /// `KCOV_ENABLE`.
    fn enable(&mut self, thread: T, instance: Instance, mode: u64) -> Outcome {
        if !self.ready(instance) {
            return INVALID;
        }
        let both = self.kernel.local_and_remote;
        let task = self.task(thread);
        if task.local.is_some() || (!both && task.remote.is_some()) {
            return BUSY;
        }
        let mode = match self.mode(mode) {
            Ok(mode) => mode,
            Err(refused) => return refused,
        };
        self.task(thread).local = Some(instance);
        self.instance(instance).enabled = Some(Enabled { owner: thread, mode, remote: None });
        Outcome::Done
    }

    /// `KCOV_DISABLE`.
    fn disable(&mut self, thread: T, instance: Instance, argument: u64) -> Outcome {
        let task = self.task(thread);
        if argument != 0 || (task.local != Some(instance) && task.remote != Some(instance)) {
            return INVALID;
        }
        self.reset(thread, instance);
        Outcome::Done
    }

    /// `kcov_disable`.
    fn reset(&mut self, thread: T, instance: Instance) {
        let both = self.kernel.local_and_remote;
        let task = self.task(thread);
        if task.remote == Some(instance) {
            task.remote = None;
            task.handle = None;
        } else {
            task.local = None;
            if !both {
                task.handle = None;
            }
        }
        self.instance(instance).enabled = None;
        self.forget(instance);
    }

    /// Nobody can ask for an instance that is closed and not enabled.
    fn forget(&mut self, instance: Instance) {
        if self.instances.get(&instance).is_some_and(|k| k.closed && k.enabled.is_none()) {
            self.instances.remove(&instance);
        }
    }

    /// `KCOV_REMOTE_ENABLE`.
    fn remote_enable(&mut self, thread: T, instance: Instance, remote: &Remote) -> Outcome {
        let number = remote.handles.len() + remote.fill as usize;
        match remote.memory {
            Memory::Nowhere => return Outcome::Refused("EFAULT"),
            _ if number > MOST_HANDLES => return INVALID,
            Memory::WithoutEnd => return Outcome::Refused("EFAULT"),
            Memory::Whole => {}
        }
        if !self.ready(instance) {
            return INVALID;
        }
        let both = self.kernel.local_and_remote;
        let task = self.task(thread);
        if task.remote.is_some() || (!both && task.local.is_some()) {
            return BUSY;
        }
        let mode = match self.mode(remote.mode.into()) {
            Ok(mode) => mode,
            Err(refused) => return refused,
        };
        match self.register(remote) {
            Ok(handles) => {
                let section = Section { area: remote.area, handles };
                let enabled = Enabled { owner: thread, mode, remote: Some(section) };
                self.instance(instance).enabled = Some(enabled);
                let task = self.task(thread);
                task.remote = Some(instance);
                if remote.common != Handle::Zero {
                    task.handle = Some(remote.common);
                }
                Outcome::Done
            }
            Err(refused) => {
                // It had begun, and is undone like an enabled one.
                self.task(thread).handle = None;
                refused
            }
        }
    }

    fn is_taken(&self, handle: &Handle) -> bool {
        let mut all = self.instances.values().filter_map(|k| k.enabled.as_ref()?.remote.as_ref());
        all.any(|section| section.handles.contains(handle))
    }

    /// The handles, if all can be registered.
    fn register(&self, remote: &Remote) -> Result<Vec<Handle>, Outcome> {
        let mut handles = Vec::new();
        let filled = (0..remote.fill).map(|n| Handle::Usb(FILL + n as u16));
        for handle in remote.handles.iter().copied().chain(filled) {
            if !matches!(handle, Handle::Usb(_)) {
                return Err(INVALID);
            }
            if self.is_taken(&handle) || handles.contains(&handle) {
                return Err(Outcome::Refused("EEXIST"));
            }
            handles.push(handle);
        }
        match remote.common {
            Handle::Zero => {}
            common @ Handle::Common(_) if self.is_taken(&common) => {
                return Err(Outcome::Refused("EEXIST"));
            }
            common @ Handle::Common(_) => handles.push(common),
            _ => return Err(INVALID),
        }
        Ok(handles)
    }
}

impl Driver for Linux {
    fn late(&self, _: Instance) -> Option<Linux> {
        None
    }

    fn open(&mut self) -> Instance {
        let instance = Instance(self.opened);
        self.opened += 1;
        self.instances.insert(instance, Kcov { words: None, enabled: None, closed: false });
        instance
    }

    fn close(&mut self, instance: Instance) {
        self.instance(instance).closed = true;
        self.forget(instance);
    }

    fn ask(&mut self, thread: T, instance: Instance, request: &Request) -> Outcome {
        match request {
            Request::Size(words) => self.size(instance, *words),
            Request::Enable(mode) => self.enable(thread, instance, *mode),
            Request::Disable(argument) => self.disable(thread, instance, *argument),
            Request::RemoteEnable(remote) => self.remote_enable(thread, instance, remote),
            _ => Outcome::Refused("ENOTTY"),
        }
    }

    fn misuse(&self, access: Access, call: Call) -> Outcome {
        Outcome::Refused(match call {
            // The descriptor's own access is looked at before what the file can do.
            Call::Read if access == Access::WriteOnly => "EBADF",
            Call::Write if access == Access::ReadOnly => "EBADF",
            Call::PositionedRead | Call::PositionedWrite | Call::Seek => "ESPIPE",
            Call::Poll => "EPERM",
            _ => "EINVAL",
        })
    }

    /// `do_mmap`, then `kcov_mmap`.
    fn map(
        &self,
        instance: Instance,
        access: Access,
        geometry: &Geometry,
    ) -> Result<Instance, &'static str> {
        let Geometry { bytes, offset, writable, private, .. } = *geometry;
        if offset % PAGE as i64 != 0 || bytes == 0 {
            return Err("EINVAL");
        }
        // A negative offset is one that no file reaches.
        if offset < 0 {
            return Err("EOVERFLOW");
        }
        let stores = writable && !private;
        if (stores && access != Access::ReadWrite) || access == Access::WriteOnly {
            return Err("EACCES");
        }
        let words = self.instances[&instance].words;
        if words.is_none_or(|words| words * WORD != bytes.next_multiple_of(PAGE)) || offset != 0 {
            return Err("EINVAL");
        }
        Ok(instance)
    }

    fn outlives(&self, _: &Geometry) -> bool {
        true
    }

    fn remap(&self, how: Remap) -> Outcome {
        Outcome::Refused(match how {
            Remap::Grow => "EFAULT",
            Remap::LeaveOld => "EINVAL",
        })
    }

    /// `kcov_task_init`.
    fn start(&mut self, parent: T, new: T) {
        let handle = self.task(parent).handle;
        self.tasks.insert(new, Task { handle, ..Task::default() });
    }

    /// `kcov_task_exit`.
    fn end(&mut self, thread: T, _: End) {
        let task = self.task(thread).clone();
        for instance in [task.local, task.remote].into_iter().flatten() {
            self.reset(thread, instance);
        }
        self.tasks.remove(&thread);
    }

    fn words(&self, instance: Instance) -> Option<u64> {
        self.instances.get(&instance)?.words
    }

    fn recording(&self, buffer: Instance) -> Option<Recording> {
        let kcov = self.instances.get(&buffer)?;
        let Enabled { owner, mode, remote } = kcov.enabled.as_ref()?;
        let thread = remote.is_none().then_some(*owner);
        Some(Recording { thread, mode: *mode, words: kcov.words? })
    }

    fn background(&self, thread: T, buffer: Instance) -> Outcome {
        let collected = || {
            let handle = self.tasks.get(&thread)?.handle?;
            let kcov = self.instances.get(&buffer)?;
            let Enabled { mode, remote, .. } = kcov.enabled.as_ref()?;
            let section = remote.as_ref().filter(|section| section.handles.contains(&handle))?;
            let room = mode.capacity(kcov.words?);
            let some = room > 0 && mode.capacity(section.area.into()) > 0;
            some.then_some(match mode {
                // The work need not compare anything.
                Mode::Cmp => Outcome::Anything,
                _ => Outcome::Grown(room),
            })
        };
        collected().unwrap_or(Outcome::Unchanged)
    }

    /// `__sanitizer_cov_trace_pc` and `write_comp_data`.
    fn counted(&self, recording: Recording, count: u64) -> Option<Outcome> {
        let capacity = recording.mode.capacity(recording.words);
        match recording.mode {
            Mode::Cmp if !self.kernel.bounds_count && count > capacity => None,
            // The position after the last word is 0: the count is begun anew, with an address.
            Mode::Pc if count == u64::MAX => Some(Outcome::Anything),
            _ if count < capacity => Some(Outcome::Grown(capacity)),
            _ => Some(Outcome::Unchanged),
        }
    }

    fn unknown_content(&self, _: Instance) -> bool {
        false
    }

    /// All handles that are free can be had at once, of the others none.
    fn shown(&self) -> Vec<(Request, Outcome)> {
        let last = FILL + MOST_HANDLES as u16 - 1;
        let usb = (0..GOOD).chain([FILL, last]).map(Handle::Usb);
        let common = (0..GOOD).map(Handle::Common);
        let (taken, free): (Vec<_>, Vec<_>) =
            usb.chain(common).partition(|handle| self.is_taken(handle));
        let enable = |common: Handle, handles: Vec<Handle>| {
            let (area, memory) = (512, Memory::Whole);
            Request::RemoteEnable(Remote { mode: 0, area, common, handles, fill: 0, memory })
        };
        let one = |handle| match handle {
            Handle::Common(_) => enable(handle, vec![]),
            _ => enable(Handle::Zero, vec![handle]),
        };
        let exists = |handle| (one(handle), Outcome::Refused("EEXIST"));
        let mut all: Vec<_> = taken.into_iter().map(exists).collect();
        let (usb, common): (Vec<_>, Vec<_>) =
            free.into_iter().partition(|handle| matches!(handle, Handle::Usb(_)));
        let first = (enable(Handle::Zero, usb), Outcome::Done);
        for request in
            [first].into_iter().chain(common.into_iter().map(|h| (one(h), Outcome::Done)))
        {
            all.extend([request, (Request::Disable(0), Outcome::Done)]);
        }
        all
    }
}
