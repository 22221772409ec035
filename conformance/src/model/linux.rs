//! The Linux driver, `kernel/kcov.c`.

use super::{
    Access, Call, Driver, End, Geometry, Handle, Instance, Memory, Mode, Outcome, Recording, Remap,
    Remote, Request, T, WORD, Work, page,
};
use crate::feature::Feature;
use std::collections::BTreeMap;

/// Optional features of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel has comparison mode.
    pub comparisons: bool,
    /// Comparison mode checks the count.
    pub bounds_count: bool,
    /// A thread can be traced and collect remotely at the same time, with two instances.
    pub local_and_remote: bool,
}

impl Kernel {
    /// The features that a target declares.
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
    /// The size in words, once it is set.
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

/// Remote collection.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    area: u32,
    handles: Vec<Handle>,
}

/// The state in `struct task_struct`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Task {
    local: Option<Instance>,
    remote: Option<Instance>,
    /// The common handle that is passed on to tasks that work for this one.
    handle: Option<Handle>,
}

/// The state of the driver.
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
/// The number of valid common handles and of valid USB handles, besides those of `fill`.
pub const GOOD: u16 = 4;
/// The first of the handles that `fill` adds.
pub const FILL: u16 = 512;
/// `CONFIG_KCOV_IRQ_AREA_SIZE`, the area size of sections in softirqs, in words.
const SOFT_AREA: u64 = 0x40000;
/// The first section of any work has at least this many records.
const LEAST_RECORDS: u64 = 4;
/// A worker runs at most this many sections for one piece of work.
const MOST_SECTIONS: u64 = 8;

const BUSY: Outcome = Outcome::Refused("EBUSY");
const INVALID: Outcome = Outcome::Refused("EINVAL");

impl Linux {
    /// A driver without instances.
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

    /// Both ways to enable require this state.
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

    /// A closed instance that is not enabled cannot be reached.
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
                // The driver undoes a partial registration like an enabled device.
                self.task(thread).handle = None;
                refused
            }
        }
    }

    fn is_taken(&self, handle: &Handle) -> bool {
        let mut all = self.instances.values().filter_map(|k| k.enabled.as_ref()?.remote.as_ref());
        all.any(|section| section.handles.contains(handle))
    }

    /// Registers all handles or none.
    fn register(&self, remote: &Remote) -> Result<Vec<Handle>, Outcome> {
        let mut handles = Vec::new();
        let filled = (0..remote.fill).map(|n| Handle::Usb(FILL + n as u16));
        for handle in remote.handles.iter().copied().chain(filled) {
            if !matches!(handle, Handle::Usb(_) | Handle::Bus) {
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
            // The kernel checks the descriptor's access before the file operations.
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
        if offset % page() as i64 != 0 || bytes == 0 {
            return Err("EINVAL");
        }
        // Page offsets are unsigned, so a negative one is beyond the end of any file.
        if offset < 0 {
            return Err("EOVERFLOW");
        }
        let stores = writable && !private;
        if (stores && access != Access::ReadWrite) || access == Access::WriteOnly {
            return Err("EACCES");
        }
        let words = self.instances[&instance].words;
        if words.is_none_or(|words| words * WORD != bytes.next_multiple_of(page())) || offset != 0 {
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

    /// `kcov_remote_start`, then `kcov_move_area`.
    fn background(&self, thread: T, work: Work, buffer: Instance, count: u64) -> Outcome {
        let collected = || {
            let handle = match work {
                Work::Worker => self.tasks.get(&thread)?.handle?,
                Work::SoftInterrupt => Handle::Bus,
            };
            let kcov = self.instances.get(&buffer)?;
            let Enabled { mode, remote, .. } = kcov.enabled.as_ref()?;
            let section = remote.as_ref().filter(|section| section.handles.contains(&handle))?;
            let (area, sections) = match work {
                Work::Worker => (section.area.into(), MOST_SECTIONS),
                Work::SoftInterrupt => (SOFT_AREA, 1),
            };
            let (capacity, each) = (mode.capacity(kcov.words?), mode.capacity(area));
            let room = capacity.checked_sub(count).filter(|&room| room > 0 && each > 0)?;
            Some(match (mode, work) {
                // The worker may not compare anything.
                (Mode::Cmp, Work::Worker) => Outcome::Anything,
                _ if room <= each.min(LEAST_RECORDS) => Outcome::Counted(count, capacity),
                _ => Outcome::Grown(count + room.min(each * sections)),
            })
        };
        collected().unwrap_or(Outcome::Unchanged)
    }

    /// `__sanitizer_cov_trace_pc` and `write_comp_data`.
    fn counted(&self, recording: Recording, count: u64) -> Option<Outcome> {
        let capacity = recording.mode.capacity(recording.words);
        match recording.mode {
            Mode::Cmp if !self.kernel.bounds_count && count > capacity => None,
            // The index wraps to 0, so an address overwrites the count.
            Mode::Pc if count == u64::MAX => Some(Outcome::Anything),
            _ if count < capacity => Some(Outcome::Grown(capacity)),
            _ => Some(Outcome::Unchanged),
        }
    }

    fn outlives_devices(&self, _: Instance) -> bool {
        false
    }

    /// Registering all free handles at once succeeds, registering a taken one fails.
    fn shown(&self) -> Vec<(Request, Outcome)> {
        let last = FILL + MOST_HANDLES as u16 - 1;
        let usb = (0..GOOD).chain([FILL, last]).map(Handle::Usb).chain([Handle::Bus]);
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
