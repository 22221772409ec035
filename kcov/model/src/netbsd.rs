//! The NetBSD driver, `sys/kern/subr_kcov.c`.

use crate::Errno::*;
use crate::*;
use kcov_sys::netbsd as sys;
use std::collections::BTreeMap;

/// The interface of a kernel, and its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// NetBSD 10, with attaching; otherwise NetBSD 9.
    pub attaches: bool,
    /// The kernel's comparisons are instrumented. Otherwise their mode is accepted and records
    /// nothing.
    pub comparisons: bool,
    /// The number of ports of the first bus of the virtual USB controller. These are the sources.
    pub ports: u64,
    /// The page size in bytes.
    pub page: u64,
}

impl Kernel {
    /// NetBSD 10 with a virtual USB controller.
    pub const LATEST: Kernel = Kernel { attaches: true, comparisons: true, ports: 8, page: 4096 };
}

/// Whether an instance is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enabled {
    No,
    /// By a thread, or none for a source.
    By(Option<T>),
    /// By a thread that has exited. The kernel may notice only when the process starts, joins or
    /// ends another thread.
    Late,
}

/// `struct kcov_desc`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Desc {
    /// The buffer's size in entries.
    entries: Option<u64>,
    enabled: Enabled,
    mode: Mode,
    remote: Option<Instance>,
    closed: bool,
}

impl Desc {
    fn new(entries: Option<u64>) -> Desc {
        Desc { entries, enabled: Enabled::No, mode: Mode::None, remote: None, closed: false }
    }

    fn is_enabled(&self) -> bool {
        self.enabled != Enabled::No
    }
}

/// The state of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetBsd {
    kernel: Kernel,
    opened: u32,
    instances: BTreeMap<Instance, Desc>,
    /// `l_kcov` of each thread.
    threads: BTreeMap<T, Instance>,
}

const MOST_BYTES: u64 = sys::KCOV_BUF_MAX_ENTRIES * WORD;
/// The first instance that represents the descriptor of a source.
const SOURCES: u32 = 1 << 30;
/// The source whose port the kernel explores.
const EXPLORED: Instance = Instance(SOURCES + 1);

/// The kernel copies the argument of every ioctl before it calls the driver.
const UNREADABLE: &[Rule<NetBsd>] = &[Rule::new(EFAULT, "the argument is unreadable", |_, _| true)];

/// `kcov_setbufsize`.
const SIZE: &[Rule<NetBsd>] = &[
    Rule::new(EBUSY, "the device is not attached, and enabled", |it, asked| {
        it.detached(asked).is_some_and(Desc::is_enabled)
    }),
    Rule::new(EINVAL, "it is not attached; fewer than 2 words, or more than 2 MiB", |it, asked| {
        let limits = sys::KCOV_BUF_MIN_ENTRIES..=sys::KCOV_BUF_MAX_ENTRIES;
        it.detached(asked).is_some() && !limits.contains(&asked.number())
    }),
    Rule::new(EEXIST, "it is not attached, and has a size", |it, asked| {
        it.detached(asked).is_some_and(|desc| desc.entries.is_some())
    }),
];

/// `kcov_enable`.
const ENABLE: &[Rule<NetBsd>] = &[
    Rule::new(EINVAL, "an unknown mode (NetBSD 10)", |it, asked| {
        it.kernel.attaches && mode(asked).is_none()
    }),
    Rule::new(EBUSY, "the device, its source or the thread is enabled", |it, asked| {
        match it.at(asked).remote {
            Some(source) => it.instances[&source].is_enabled(),
            None => it.at(asked).is_enabled() || it.traced(asked.thread()).is_some(),
        }
    }),
    Rule::new(ENOBUFS, "it is not attached, and has no size", |it, asked| {
        it.detached(asked).is_some_and(|desc| desc.entries.is_none())
    }),
    Rule::new(EINVAL, "an unknown mode (NetBSD 9)", |_, asked| mode(asked).is_none()),
];

/// `kcov_disable`.
const DISABLE: &[Rule<NetBsd>] = &[Rule::new(
    ENOENT,
    "neither its source nor the thread is enabled with it",
    |it, asked| match it.at(asked).remote {
        Some(source) => !it.instances[&source].is_enabled(),
        None => it.at(asked).enabled != Enabled::By(Some(asked.thread())),
    },
)];

/// `kcov_remote_attach`.
const ATTACH: &[Rule<NetBsd>] = &[
    Rule::new(EINVAL, "NetBSD 9", |it, _| !it.kernel.attaches),
    Rule::new(EEXIST, "the device is enabled", |it, asked| it.at(asked).is_enabled()),
    Rule::new(ENOENT, "there is no such source", |it, asked| {
        let Operation::Ask { request: Request::Attach(subsystem, id), .. } = *asked.operation
        else {
            return true;
        };
        it.source(subsystem, id).is_none()
    }),
];

/// `kcov_remote_detach`.
const DETACH: &[Rule<NetBsd>] = &[
    Rule::new(EINVAL, "NetBSD 9", |it, _| !it.kernel.attaches),
    Rule::new(EEXIST, "the device is enabled", |it, asked| it.at(asked).is_enabled()),
    Rule::new(ENOENT, "it is not attached", |it, asked| it.detached(asked).is_some()),
];

const UNKNOWN: &[Rule<NetBsd>] = &[Rule::new(EINVAL, "always", |_, _| true)];

/// `sys_mmap`, then `kcov_fops_mmap`. Neither checks the access mode of the descriptor.
const MAP: &[Rule<NetBsd>] = &[
    Rule::new(EINVAL, "no bytes (NetBSD 10)", |it, asked| {
        it.kernel.attaches && it.pages(asked).0 == 0
    }),
    Rule::new(EACCES, "an executable mapping", |_, asked| asked.geometry().executable),
    Rule::new(EINVAL, "a negative offset, or length or offset above 2 MiB", |it, asked| {
        let (bytes, offset) = it.pages(asked);
        offset < 0 || bytes > MOST_BYTES || offset as u64 > MOST_BYTES
    }),
    Rule::new(ENOMEM, "beyond the end of the buffer", |it, asked| {
        let (bytes, offset) = it.pages(asked);
        let size = it.words(it.buffer(asked.instance)).unwrap_or(0) * WORD;
        bytes.saturating_add_signed(offset) > size.next_multiple_of(it.kernel.page)
    }),
];

/// The argument is an `int`.
fn mode(asked: &Asked<'_>) -> Option<Mode> {
    match asked.number() as i32 {
        sys::KCOV_MODE_NONE => Some(Mode::None),
        sys::KCOV_MODE_TRACE_PC => Some(Mode::Pc),
        sys::KCOV_MODE_TRACE_CMP => Some(Mode::Cmp),
        _ => None,
    }
}

impl NetBsd {
    /// A driver without instances.
    #[must_use]
    pub fn new(kernel: Kernel) -> NetBsd {
        let source = Desc::new(Some(sys::KCOV_BUF_MAX_ENTRIES));
        let sources = (0..kernel.ports).map(|port| Instance(SOURCES + port as u32));
        let instances = sources.map(|instance| (instance, source.clone())).collect();
        NetBsd { kernel, opened: 0, instances, threads: BTreeMap::new() }
    }

    fn rules(operation: &Operation) -> &'static [Rule<NetBsd>] {
        match operation {
            Operation::Ask { request, .. } => match request {
                Request::Size(_) => SIZE,
                Request::Enable(_) => ENABLE,
                Request::Disable(_) => DISABLE,
                Request::Attach(..) => ATTACH,
                Request::Detach => DETACH,
                Request::SizeUnreadable | Request::EnableUnreadable | Request::AttachUnreadable => {
                    UNREADABLE
                }
                _ => UNKNOWN,
            },
            _ => MAP,
        }
    }

    fn at(&self, asked: &Asked<'_>) -> &Desc {
        &self.instances[&asked.instance]
    }

    /// The instance, if it is not attached.
    fn detached(&self, asked: &Asked<'_>) -> Option<&Desc> {
        Some(self.at(asked)).filter(|desc| desc.remote.is_none())
    }

    fn desc(&mut self, instance: Instance) -> &mut Desc {
        self.instances.get_mut(&instance).expect("an open instance")
    }

    fn source(&self, subsystem: u64, id: u64) -> Option<Instance> {
        let exists = subsystem == sys::KCOV_REMOTE_VHCI && id < self.kernel.ports;
        exists.then(|| Instance(SOURCES + id as u32))
    }

    /// The length and offset of a mapping in whole pages. mmap rounds an offset inside a page down.
    fn pages(&self, asked: &Asked<'_>) -> (u64, i64) {
        let Geometry { bytes, offset, .. } = asked.geometry();
        let inside = offset.rem_euclid(self.kernel.page as i64);
        let bytes = bytes.saturating_add(inside as u64);
        (bytes.checked_next_multiple_of(self.kernel.page).unwrap_or(u64::MAX), offset - inside)
    }

    fn forget(&mut self, instance: Instance) {
        if self.instances.get(&instance).is_some_and(|desc| desc.closed && !desc.is_enabled()) {
            self.instances.remove(&instance);
        }
    }
}

impl Driver for NetBsd {
    fn order() -> Order<NetBsd> {
        &[
            ("KCOV_IOC_SETBUFSIZE", SIZE),
            ("KCOV_IOC_ENABLE", ENABLE),
            ("KCOV_IOC_DISABLE", DISABLE),
            ("KCOV_IOC_REMOTE_ATTACH", ATTACH),
            ("KCOV_IOC_REMOTE_DETACH", DETACH),
            ("an ioctl with an unreadable argument", UNREADABLE),
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
        self.instances.insert(instance, Desc::new(None));
        instance
    }

    /// `kcov_fops_close`.
    fn close(&mut self, instance: Instance) {
        if let Some(source) = self.desc(instance).remote {
            self.desc(source).enabled = Enabled::No;
        }
        self.desc(instance).closed = true;
        self.forget(instance);
    }

    fn refusals(&self, asked: &Asked<'_>) -> Vec<&'static Reason> {
        held(NetBsd::rules(asked.operation), self, asked)
    }

    fn ask(&mut self, asked: &Asked<'_>) -> Outcome {
        if let Some(reason) = self.refusals(asked).first() {
            return Outcome::Refused(reason.errno);
        }
        let (thread, instance) = (asked.thread(), asked.instance);
        let remote = self.at(asked).remote;
        let Operation::Ask { request, .. } = asked.operation else { return Outcome::Done };
        match request {
            Request::Size(entries) if remote.is_none() => {
                self.desc(instance).entries = Some(*entries);
            }
            Request::Enable(_) => {
                let desc = self.desc(remote.unwrap_or(instance));
                desc.mode = mode(asked).expect("a mode that is known");
                desc.enabled = Enabled::By(remote.is_none().then_some(thread));
                if remote.is_none() {
                    self.threads.insert(thread, instance);
                }
            }
            Request::Disable(_) => {
                self.desc(remote.unwrap_or(instance)).enabled = Enabled::No;
                if remote.is_none() {
                    self.threads.remove(&thread);
                }
            }
            Request::Attach(subsystem, id) => {
                self.desc(instance).remote = self.source(*subsystem, *id);
            }
            Request::Detach => {
                self.desc(remote.expect("it is attached")).enabled = Enabled::No;
                self.desc(instance).remote = None;
            }
            _ => {}
        }
        Outcome::Done
    }

    fn misuse(&self, access: Access, call: Call) -> Errno {
        match call {
            Call::Read | Call::PositionedRead if access == Access::WriteOnly => EBADF,
            Call::Write | Call::PositionedWrite if access == Access::ReadOnly => EBADF,
            Call::Read | Call::Write | Call::Stat => EOPNOTSUPP,
            Call::PositionedRead | Call::PositionedWrite | Call::Seek => ESPIPE,
            Call::Truncate if self.kernel.attaches => EOPNOTSUPP,
            Call::Truncate | Call::Sync | Call::Nonblocking | Call::Poll => EINVAL,
        }
    }

    /// On NetBSD 9, mapping no bytes of a missing buffer passes the range check and panics.
    fn outlives(&self, geometry: &Geometry) -> bool {
        self.kernel.attaches || geometry.bytes > 0
    }

    fn remap(&self, _: Remap) -> Outcome {
        Outcome::Anything
    }

    fn adds_access(&self, _: Access, _: &Geometry) -> Option<Errno> {
        None
    }

    fn start(&mut self, _: T, _: T) {}

    /// `kcov_lwp_free`.
    fn end(&mut self, thread: T, how: End) {
        let Some(instance) = self.threads.remove(&thread) else { return };
        self.desc(instance).enabled = match how {
            End::Process => Enabled::No,
            End::Thread | End::Execution => Enabled::Late,
        };
        self.forget(instance);
    }

    fn catch_up(&mut self, instance: Instance) -> bool {
        // A mapping outlives its device.
        match self.instances.get_mut(&instance) {
            Some(desc) if desc.enabled == Enabled::Late => desc.enabled = Enabled::No,
            _ => return false,
        }
        true
    }

    fn buffer(&self, instance: Instance) -> Instance {
        self.instances.get(&instance).and_then(|desc| desc.remote).unwrap_or(instance)
    }

    fn words(&self, buffer: Instance) -> Option<u64> {
        self.instances.get(&buffer)?.entries
    }

    /// Sources live as long as the kernel.
    fn outlives_devices(&self, buffer: Instance) -> bool {
        buffer.0 >= SOURCES
    }

    fn traced(&self, thread: T) -> Option<Instance> {
        self.threads.get(&thread).copied()
    }

    fn recording(&self, buffer: Instance) -> Option<Recording> {
        let desc = self.instances.get(&buffer)?;
        let thread = match desc.enabled {
            Enabled::No => return None,
            Enabled::By(thread) => thread,
            Enabled::Late => None,
        };
        let mode = match desc.mode {
            Mode::Cmp if !self.kernel.comparisons => Mode::None,
            mode => mode,
        };
        Some(Recording { thread, mode, words: desc.entries? })
    }

    /// `__sanitizer_cov_trace_pc` and `trace_cmp`.
    fn place(&self, mode: Mode, words: u64, count: u64) -> Place {
        let index = count.wrapping_mul(mode.stride()).wrapping_add(1);
        match mode {
            Mode::None => Place::Dropped,
            Mode::Pc if count >= words - 1 => Place::Dropped,
            Mode::Cmp if index.wrapping_add(3) >= words => Place::Dropped,
            // Four times the count can wrap.
            Mode::Cmp if count >= words => Place::Outside,
            _ => Place::At { index, count: count + 1 },
        }
    }

    /// `kcov_remote_enter`.
    fn begin(&self, origin: Origin) -> Option<Section> {
        let Origin::Source(subsystem, id) = origin else { return None };
        let buffer = self.source(subsystem, id)?;
        let mode = self.recording(buffer)?.mode;
        Some(Section { buffer, mode, area: None })
    }

    fn appends(&self, _: &Section) -> bool {
        false
    }

    /// The kernel explores a port.
    fn background(&self, _: T, _: Work, buffer: Instance, count: u64) -> Outcome {
        match self.recording(buffer) {
            Some(recording) if buffer == EXPLORED => {
                self.counted(recording, count).unwrap_or(Outcome::Anything)
            }
            _ => Outcome::Unchanged,
        }
    }

    /// Whether each source is enabled. The device stays attached to the last one, because detaching
    /// disables.
    fn shown(&self) -> Vec<(Request, Outcome)> {
        let ask = |port| {
            let refused = match self.recording(Instance(SOURCES + port as u32)) {
                Some(_) => (Request::Enable(1), Outcome::Refused(EBUSY)),
                None => (Request::Disable(0), Outcome::Refused(ENOENT)),
            };
            [(Request::Attach(sys::KCOV_REMOTE_VHCI, port), Outcome::Done), refused]
        };
        (0..self.kernel.ports).flat_map(ask).collect()
    }
}
