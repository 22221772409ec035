//! The Linux driver, `kernel/kcov.c`.

use crate::Errno::*;
use crate::*;
use kcov_sys::linux as sys;
use std::collections::BTreeMap;

/// Properties of a kernel and its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel has comparison mode.
    pub comparisons: bool,
    /// Comparison mode checks the count.
    pub bounds_count: bool,
    /// A thread can be traced and collect remotely at the same time, with two instances.
    pub local_and_remote: bool,
    /// The page size in bytes.
    pub page: u64,
    /// Buffers of more words cannot be allocated.
    pub most_words: u64,
}

impl Kernel {
    /// Linux 7.3 with all features and enough memory.
    pub const LATEST: Kernel = Kernel {
        comparisons: true,
        bounds_count: true,
        local_and_remote: true,
        page: 4096,
        most_words: u64::MAX,
    };
}

/// `struct kcov`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kcov {
    /// The size in words, once it is set.
    words: Option<u64>,
    enabled: Option<Enabled>,
    /// How often collection ended.
    sequence: u64,
    /// No descriptor is left.
    closed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Enabled {
    owner: T,
    mode: Mode,
    /// The area size and the handles of remote collection.
    remote: Option<(u32, Vec<Handle>)>,
}

/// The state in `struct task_struct`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Task {
    local: Option<Instance>,
    remote: Option<Instance>,
    /// The common handle, which tasks that work for this one inherit.
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

/// The USB handle of the bus whose softirqs are remote sections.
pub const BUS: Handle = Handle(sys::KCOV_SUBSYSTEM_USB | 0xffff);
/// The number of valid handles of each kind for tests: USB instances from 0, common ones from 1.
pub const GOOD: u64 = 4;
/// The area size of sections in softirqs, in words: `CONFIG_KCOV_IRQ_AREA_SIZE`.
const SOFT_AREA: u64 = 0x40000;
/// The first section of any work has at least this many records.
const LEAST_RECORDS: u64 = 4;
/// A worker runs at most this many sections for one piece of work.
const MOST_SECTIONS: u64 = 8;

const SIZE: &[Rule<Linux>] = &[
    Rule::new(EINVAL, "fewer than 2 words, or more than `INT_MAX` bytes", |_, asked| {
        let greatest = sys::kcov_init_trace_max(WORD);
        !(sys::KCOV_INIT_TRACE_MIN..=greatest).contains(&asked.number())
    }),
    Rule::new(ENOMEM, "there is no memory for the buffer", |it, asked| {
        !it.has_memory(asked.number())
    }),
    Rule::new(EBUSY, "the device has a size", |it, asked| it.at(asked).words.is_some()),
];

const ENABLE: &[Rule<Linux>] = &[
    Rule::new(EINVAL, "the device has no size, or is enabled", Linux::is_unready),
    Rule::new(EBUSY, "the thread is traced, or before 7.2 collects remotely", |it, asked| {
        let task = it.task(asked.thread());
        task.local.is_some() || (!it.kernel.local_and_remote && task.remote.is_some())
    }),
    Rule::new(EINVAL, "an unknown mode", |_, asked| asked.number() > 1),
    Rule::new(ENOTSUPP, "comparison mode, which is not built in", |it, asked| {
        asked.number() == 1 && !it.kernel.comparisons
    }),
];

const DISABLE: &[Rule<Linux>] = &[
    Rule::new(EINVAL, "an argument other than 0", |_, asked| asked.number() != 0),
    Rule::new(EINVAL, "the thread has not enabled the device", |it, asked| {
        let task = it.task(asked.thread());
        ![task.local, task.remote].contains(&Some(asked.instance))
    }),
];

const REMOTE_ENABLE: &[Rule<Linux>] = &[
    Rule::new(EFAULT, "the structure is unreadable", |_, asked| {
        remote(asked).memory == Memory::Nowhere
    }),
    Rule::new(EINVAL, "more than 256 handles", |_, asked| {
        remote(asked).array().len() > sys::KCOV_REMOTE_MAX_HANDLES as usize
    }),
    Rule::new(EFAULT, "the handles are unreadable", |_, asked| {
        remote(asked).memory != Memory::Whole
    }),
    Rule::new(EINVAL, "the device has no size, or is enabled", Linux::is_unready),
    Rule::new(EBUSY, "the thread collects remotely, or before 7.2 is traced", |it, asked| {
        let task = it.task(asked.thread());
        task.remote.is_some() || (!it.kernel.local_and_remote && task.local.is_some())
    }),
    Rule::new(EINVAL, "an unknown mode", |_, asked| remote(asked).mode > 1),
    Rule::new(ENOTSUPP, "comparison mode, which is not built in", |it, asked| {
        remote(asked).mode == 1 && !it.kernel.comparisons
    }),
    Rule::new(EINVAL, "the first bad handle of the array is not a USB handle", |it, asked| {
        it.bad_handle(asked).is_some_and(|handle| !is_of(handle, sys::KCOV_SUBSYSTEM_USB))
    }),
    Rule::new(EEXIST, "the first bad handle of the array is registered", |it, asked| {
        it.bad_handle(asked).is_some_and(|handle| is_of(handle, sys::KCOV_SUBSYSTEM_USB))
    }),
    Rule::new(EINVAL, "the common handle has a subsystem or a reserved bit", |_, asked| {
        !is_of(remote(asked).common, sys::KCOV_SUBSYSTEM_COMMON)
    }),
    Rule::new(EEXIST, "the common handle is registered", |it, asked| {
        it.is_taken(remote(asked).common)
    }),
];
/// The rules from this one on are tested while handles are registered.
const REGISTRATION: usize = 7;

const UNKNOWN: &[Rule<Linux>] = &[Rule::new(ENOTTY, "always", |_, _| true)];

/// `do_mmap`, then `kcov_mmap`.
const MAP: &[Rule<Linux>] = &[
    Rule::new(EINVAL, "an offset inside a page, or no bytes", |it, asked| {
        let Geometry { bytes, offset, .. } = asked.geometry();
        offset % it.kernel.page as i64 != 0 || bytes == 0
    }),
    // Page offsets are unsigned, so a negative one is beyond the end of any file.
    Rule::new(EOVERFLOW, "a negative offset", |_, asked| asked.geometry().offset < 0),
    Rule::new(EACCES, "the descriptor does not allow this access", |_, asked| {
        let Geometry { writable, private, .. } = asked.geometry();
        let stores = writable && !private;
        (stores && asked.access != Access::ReadWrite) || asked.access == Access::WriteOnly
    }),
    Rule::new(EINVAL, "not the whole buffer, or there is none", |it, asked| {
        let Geometry { bytes, offset, .. } = asked.geometry();
        let bytes = bytes.checked_next_multiple_of(it.kernel.page);
        offset != 0 || it.at(asked).words.map(|words| words * WORD) != bytes
    }),
];

fn remote<'a>(asked: &Asked<'a>) -> &'a Remote {
    match asked.operation {
        Operation::Ask { request: Request::RemoteEnable(remote), .. } => remote,
        other => panic!("no KCOV_REMOTE_ENABLE: {other:?}"),
    }
}

/// `kcov_check_handle`.
fn is_of(handle: Handle, subsystem: u64) -> bool {
    handle.0 & !sys::KCOV_INSTANCE_MASK == subsystem
}

impl Linux {
    /// A driver without instances.
    #[must_use]
    pub fn new(kernel: Kernel) -> Linux {
        Linux { kernel, opened: 0, instances: BTreeMap::new(), tasks: BTreeMap::new() }
    }

    /// The properties of the kernel.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    fn has_memory(&self, words: u64) -> bool {
        words <= self.kernel.most_words
    }

    /// Whether sections of an instance have an area that cannot be allocated, so nothing is collected
    /// but in softirqs.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        let mut enabled =
            self.instances.values().filter_map(|kcov| kcov.enabled.as_ref()?.remote.as_ref());
        enabled.any(|(area, _)| !self.has_memory((*area).into()))
    }

    fn rules(operation: &Operation) -> &'static [Rule<Linux>] {
        match operation {
            Operation::Ask { request, .. } => match request {
                Request::Size(_) => SIZE,
                Request::Enable(_) => ENABLE,
                Request::Disable(_) => DISABLE,
                Request::RemoteEnable(_) => REMOTE_ENABLE,
                _ => UNKNOWN,
            },
            _ => MAP,
        }
    }

    fn at(&self, asked: &Asked<'_>) -> &Kcov {
        &self.instances[&asked.instance]
    }

    fn instance(&mut self, instance: Instance) -> &mut Kcov {
        self.instances.get_mut(&instance).expect("an open instance")
    }

    fn task(&self, thread: T) -> Task {
        self.tasks.get(&thread).cloned().unwrap_or_default()
    }

    /// Whether it can be enabled in neither way.
    fn is_unready(&self, asked: &Asked<'_>) -> bool {
        let kcov = self.at(asked);
        kcov.words.is_none() || kcov.enabled.is_some()
    }

    fn is_taken(&self, handle: Handle) -> bool {
        self.collecting(handle).is_some()
    }

    fn collecting(&self, handle: Handle) -> Option<(Instance, &Kcov)> {
        let mut all = self.instances.iter().map(|(&instance, kcov)| (instance, kcov));
        all.find(|(_, kcov)| {
            let remote = kcov.enabled.as_ref().and_then(|enabled| enabled.remote.as_ref());
            remote.is_some_and(|(_, handles)| handles.contains(&handle))
        })
    }

    /// The first handle of the array that is not a free USB handle, or is there twice.
    fn bad_handle(&self, asked: &Asked<'_>) -> Option<Handle> {
        let mut before = Vec::new();
        remote(asked).array().find(|&handle| {
            let twice = before.contains(&handle);
            before.push(handle);
            twice || !is_of(handle, sys::KCOV_SUBSYSTEM_USB) || self.is_taken(handle)
        })
    }

    fn enable(&mut self, asked: &Asked<'_>, mode: u64, remote: Option<(u32, Vec<Handle>)>) {
        let mode = if mode == 1 { Mode::Cmp } else { Mode::Pc };
        let enabled = Enabled { owner: asked.thread(), mode, remote };
        self.instance(asked.instance).enabled = Some(enabled);
    }

    /// `kcov_disable`.
    fn reset(&mut self, thread: T, instance: Instance) {
        let both = self.kernel.local_and_remote;
        let task = self.tasks.entry(thread).or_default();
        if task.remote == Some(instance) {
            task.remote = None;
            task.handle = None;
        } else {
            task.local = None;
            if !both {
                task.handle = None;
            }
        }
        let kcov = self.instance(instance);
        kcov.enabled = None;
        kcov.sequence += 1;
        self.forget(instance);
    }

    /// A closed instance that is not enabled cannot be reached.
    fn forget(&mut self, instance: Instance) {
        if self.instances.get(&instance).is_some_and(|k| k.closed && k.enabled.is_none()) {
            self.instances.remove(&instance);
        }
    }
}

impl Driver for Linux {
    fn order() -> Order<Linux> {
        &[
            ("KCOV_INIT_TRACE", SIZE),
            ("KCOV_ENABLE", ENABLE),
            ("KCOV_DISABLE", DISABLE),
            ("KCOV_REMOTE_ENABLE", REMOTE_ENABLE),
            ("any other ioctl", UNKNOWN),
            ("mmap", MAP),
        ]
    }

    fn page(&self) -> u64 {
        self.kernel.page
    }

    fn open(&mut self) -> Instance {
        let instance = Instance(self.opened);
        self.opened += 1;
        self.instances.insert(instance, Kcov::default());
        instance
    }

    fn close(&mut self, instance: Instance) {
        self.instance(instance).closed = true;
        self.forget(instance);
    }

    fn refusals(&self, asked: &Asked<'_>) -> Vec<&'static Reason> {
        held(Linux::rules(asked.operation), self, asked)
    }

    /// `kcov_ioctl`.
    fn ask(&mut self, asked: &Asked<'_>) -> Outcome {
        let (thread, instance) = (asked.thread(), asked.instance);
        let rules = Linux::rules(asked.operation);
        if let Some(place) = rules.iter().position(|rule| (rule.holds)(self, asked)) {
            if std::ptr::eq(rules, REMOTE_ENABLE) && place >= REGISTRATION {
                // The driver undoes a partial registration like an enabled device.
                self.tasks.entry(thread).or_default().handle = None;
            }
            return Outcome::Refused(rules[place].reason.errno);
        }
        let Operation::Ask { request, .. } = asked.operation else { return Outcome::Done };
        match request {
            Request::Size(words) => self.instance(instance).words = Some(*words),
            Request::Enable(mode) => {
                self.enable(asked, *mode, None);
                self.tasks.entry(thread).or_default().local = Some(instance);
            }
            Request::RemoteEnable(remote) => {
                let common = Some(remote.common).filter(|handle| handle.0 != 0);
                let handles = remote.array().chain(common).collect();
                self.enable(asked, remote.mode.into(), Some((remote.area, handles)));
                let task = self.tasks.entry(thread).or_default();
                task.remote = Some(instance);
                task.handle = common.or(task.handle);
            }
            _ => self.reset(thread, instance),
        }
        Outcome::Done
    }

    fn misuse(&self, access: Access, call: Call) -> Errno {
        match call {
            // The kernel checks the descriptor's access before the file operations.
            Call::Read if access == Access::WriteOnly => EBADF,
            Call::Write if access == Access::ReadOnly => EBADF,
            Call::PositionedRead | Call::PositionedWrite | Call::Seek => ESPIPE,
            Call::Poll => EPERM,
            _ => EINVAL,
        }
    }

    fn outlives(&self, _: &Geometry) -> bool {
        true
    }

    fn remap(&self, how: Remap) -> Outcome {
        Outcome::Refused(match how {
            Remap::Grow => EFAULT,
            Remap::LeaveOld => EINVAL,
        })
    }

    /// `do_mprotect_pkey`: a shared mapping of a file that is only read stays unwritable.
    fn adds_access(&self, access: Access, geometry: &Geometry) -> Option<Errno> {
        (!geometry.private && access != Access::ReadWrite).then_some(EACCES)
    }

    /// `kcov_task_init`.
    fn start(&mut self, parent: T, new: T) {
        let handle = self.task(parent).handle;
        self.tasks.insert(new, Task { handle, ..Task::default() });
    }

    /// `kcov_task_exit`.
    fn end(&mut self, thread: T, _: End) {
        let task = self.task(thread);
        for instance in [task.local, task.remote].into_iter().flatten() {
            self.reset(thread, instance);
        }
        self.tasks.remove(&thread);
    }

    fn catch_up(&mut self, _: Instance) -> bool {
        false
    }

    fn buffer(&self, instance: Instance) -> Instance {
        instance
    }

    fn words(&self, buffer: Instance) -> Option<u64> {
        self.instances.get(&buffer)?.words
    }

    fn outlives_devices(&self, _: Instance) -> bool {
        false
    }

    fn traced(&self, thread: T) -> Option<Instance> {
        self.tasks.get(&thread)?.local
    }

    fn recording(&self, buffer: Instance) -> Option<Recording> {
        let kcov = self.instances.get(&buffer)?;
        let Enabled { owner, mode, remote } = kcov.enabled.as_ref()?;
        let thread = remote.is_none().then_some(*owner);
        Some(Recording { thread, mode: *mode, words: kcov.words? })
    }

    /// `__sanitizer_cov_trace_pc` and `write_comp_data`.
    fn place(&self, mode: Mode, words: u64, count: u64) -> Place {
        let new = count.wrapping_add(1);
        match mode {
            // The index of a count of all ones wraps to 0.
            Mode::Pc if new < words => Place::At { index: new, count: new },
            Mode::Cmp if self.kernel.bounds_count && count >= words => Place::Dropped,
            Mode::Cmp => {
                let index = count.wrapping_mul(4).wrapping_add(1);
                let end = index.wrapping_add(4).wrapping_mul(WORD);
                match end <= words * WORD {
                    true if count < words => Place::At { index, count: new },
                    true => Place::Outside,
                    false => Place::Dropped,
                }
            }
            _ => Place::Dropped,
        }
    }

    /// `kcov_remote_start`.
    fn begin(&self, origin: Origin) -> Option<Section> {
        let Origin::Handle(handle) = origin else { return None };
        let (buffer, kcov) = self.collecting(handle)?;
        let Enabled { mode, remote, .. } = kcov.enabled.as_ref()?;
        let area = u64::from(remote.as_ref()?.0);
        Some(Section { buffer, mode: *mode, area: Some((area, kcov.sequence)) })
    }

    /// `kcov_remote_stop`.
    fn appends(&self, section: &Section) -> bool {
        let kcov = self.instances.get(&section.buffer);
        kcov.is_some_and(|kcov| {
            let same = section.area.is_some_and(|(_, sequence)| sequence == kcov.sequence);
            same && kcov.enabled.is_some()
        })
    }

    /// `kcov_remote_start`, then `kcov_move_area`.
    fn background(&self, thread: T, work: Work, buffer: Instance, count: u64) -> Outcome {
        let collected = || {
            let handle = match work {
                Work::Worker => self.tasks.get(&thread)?.handle?,
                Work::SoftInterrupt => BUS,
            };
            let section = self.begin(Origin::Handle(handle)).filter(|s| s.buffer == buffer)?;
            let (area, sections) = match work {
                Work::Worker if self.has_memory(section.area?.0) => {
                    (section.area?.0, MOST_SECTIONS)
                }
                Work::Worker => return None,
                Work::SoftInterrupt => (SOFT_AREA, 1),
            };
            let (capacity, each) =
                (section.mode.capacity(self.words(buffer)?), section.mode.capacity(area));
            let room = capacity.checked_sub(count).filter(|&room| room > 0 && each > 0)?;
            Some(match (section.mode, work) {
                // The worker may not compare anything.
                (Mode::Cmp, Work::Worker) => Outcome::Anything,
                _ if room <= each.min(LEAST_RECORDS) => Outcome::Counted(count, capacity),
                _ => Outcome::Grown(count + room.min(each * sections)),
            })
        };
        collected().unwrap_or(Outcome::Unchanged)
    }

    /// Registering all free handles at once succeeds, registering a taken one fails.
    fn shown(&self) -> Vec<(Request, Outcome)> {
        let last = sys::KCOV_REMOTE_MAX_HANDLES - 1;
        let usb = (0..GOOD).map(|n| Handle(sys::KCOV_SUBSYSTEM_USB | n));
        let usb = usb.chain([Remote::filling(0), Remote::filling(last), BUS]);
        let common = (1..=GOOD).map(|n| Handle(sys::KCOV_SUBSYSTEM_COMMON | n));
        let (taken, free): (Vec<_>, Vec<_>) =
            usb.chain(common).partition(|handle| self.is_taken(*handle));
        let enable = |common, handles| Request::RemoteEnable(Remote::new(common, handles));
        let one = |handle| match is_of(handle, sys::KCOV_SUBSYSTEM_COMMON) {
            true => enable(handle, vec![]),
            false => enable(Handle(0), vec![handle]),
        };
        let exists = |handle| (one(handle), Outcome::Refused(EEXIST));
        let mut all: Vec<_> = taken.into_iter().map(exists).collect();
        let (usb, common): (Vec<_>, Vec<_>) =
            free.into_iter().partition(|handle| is_of(*handle, sys::KCOV_SUBSYSTEM_USB));
        for request in [enable(Handle(0), usb)].into_iter().chain(common.into_iter().map(one)) {
            all.extend([(request, Outcome::Done), (Request::Disable(0), Outcome::Done)]);
        }
        all
    }
}
