//! The NetBSD driver, `sys/kern/subr_kcov.c`.

use super::{
    Access, Call, Driver, End, Geometry, Instance, Mode, Outcome, Recording, Remap, Request, T,
    WORD, Work, page,
};
use crate::feature::Feature;
use std::collections::BTreeMap;

/// The interface of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// NetBSD 10, with attaching; otherwise NetBSD 9.
    pub attaches: bool,
    /// The number of ports of the first bus of the virtual USB controller. These are the sources.
    pub ports: u64,
}

impl Kernel {
    /// The interface that a target declares.
    #[must_use]
    pub fn of(features: &[Feature]) -> Kernel {
        let ports = if features.contains(&Feature::Vhci) { 3 } else { 0 };
        Kernel { attaches: features.contains(&Feature::NetBsd10), ports }
    }
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

/// The state of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetBsd {
    kernel: Kernel,
    opened: u32,
    instances: BTreeMap<Instance, Desc>,
    /// `l_kcov` of each thread.
    threads: BTreeMap<T, Instance>,
}

/// `KCOV_BUF_MAX_ENTRIES`.
const MOST_ENTRIES: u64 = 256 << 10;
const MOST_BYTES: u64 = MOST_ENTRIES * WORD;
/// The first instance that represents the descriptor of a source.
const SOURCES: u32 = 1 << 30;
/// The source whose port the kernel explores.
const EXPLORED: Instance = Instance(SOURCES + 1);

const BUSY: Outcome = Outcome::Refused("EBUSY");
const INVALID: Outcome = Outcome::Refused("EINVAL");
const NO_ENTRY: Outcome = Outcome::Refused("ENOENT");
const EXISTS: Outcome = Outcome::Refused("EEXIST");

impl NetBsd {
    /// A driver without instances.
    #[must_use]
    pub fn new(kernel: Kernel) -> NetBsd {
        let source = Desc {
            entries: Some(MOST_ENTRIES),
            enabled: Enabled::No,
            mode: Mode::None,
            remote: None,
            closed: false,
        };
        let instances =
            (0..kernel.ports).map(|port| (Instance(SOURCES + port as u32), source.clone()));
        NetBsd { kernel, opened: 0, instances: instances.collect(), threads: BTreeMap::new() }
    }

    fn desc(&mut self, instance: Instance) -> &mut Desc {
        self.instances.get_mut(&instance).expect("an open instance")
    }

    /// `kcov_setbufsize`.
    fn size(&mut self, instance: Instance, entries: u64) -> Outcome {
        let desc = self.desc(instance);
        if desc.remote.is_some() {
            return Outcome::Done;
        }
        if desc.enabled != Enabled::No {
            return BUSY;
        }
        if !(2..=MOST_ENTRIES).contains(&entries) {
            return INVALID;
        }
        if desc.entries.is_some() {
            return EXISTS;
        }
        desc.entries = Some(entries);
        Outcome::Done
    }

    /// `kcov_enable`. The argument is an `int`.
    fn enable(&mut self, thread: T, instance: Instance, mode: u64) -> Outcome {
        let mode = match mode as u32 {
            0 => Some(Mode::None),
            1 => Some(Mode::Pc),
            2 => Some(Mode::Cmp),
            _ => None,
        };
        if self.kernel.attaches && mode.is_none() {
            return INVALID;
        }
        let bound = self.threads.contains_key(&thread);
        if let Some(source) = self.desc(instance).remote {
            let source = self.desc(source);
            if source.enabled != Enabled::No {
                return BUSY;
            }
            source.enabled = Enabled::By(None);
            source.mode = mode.expect("a mode that is known");
            return Outcome::Done;
        }
        let desc = self.desc(instance);
        if desc.enabled != Enabled::No || bound {
            return BUSY;
        }
        if desc.entries.is_none() {
            return Outcome::Refused("ENOBUFS");
        }
        let Some(mode) = mode else { return INVALID };
        desc.mode = mode;
        desc.enabled = Enabled::By(Some(thread));
        self.threads.insert(thread, instance);
        Outcome::Done
    }

    /// `kcov_disable`.
    fn disable(&mut self, thread: T, instance: Instance) -> Outcome {
        if let Some(source) = self.desc(instance).remote {
            return self.disable_source(source);
        }
        if self.desc(instance).enabled != Enabled::By(Some(thread)) {
            return NO_ENTRY;
        }
        self.desc(instance).enabled = Enabled::No;
        self.threads.remove(&thread);
        Outcome::Done
    }

    /// `kcov_remote_disable`.
    fn disable_source(&mut self, source: Instance) -> Outcome {
        let source = self.desc(source);
        if source.enabled == Enabled::No {
            return NO_ENTRY;
        }
        source.enabled = Enabled::No;
        Outcome::Done
    }

    /// `kcov_remote_attach`.
    fn attach(&mut self, instance: Instance, subsystem: u64, id: u64) -> Outcome {
        if self.desc(instance).enabled != Enabled::No {
            return EXISTS;
        }
        if subsystem != 0 || id >= self.kernel.ports {
            return NO_ENTRY;
        }
        self.desc(instance).remote = Some(Instance(SOURCES + id as u32));
        Outcome::Done
    }

    /// `kcov_remote_detach`.
    fn detach(&mut self, instance: Instance) -> Outcome {
        let desc = self.desc(instance);
        if desc.enabled != Enabled::No {
            return EXISTS;
        }
        let Some(source) = desc.remote.take() else { return NO_ENTRY };
        self.disable_source(source);
        Outcome::Done
    }

    fn forget(&mut self, instance: Instance) {
        if self.instances.get(&instance).is_some_and(|d| d.closed && d.enabled == Enabled::No) {
            self.instances.remove(&instance);
        }
    }
}

impl Driver for NetBsd {
    fn late(&self, instance: Instance) -> Option<NetBsd> {
        let mut noticed = self.clone();
        // A mapping outlives its device.
        let desc = noticed.instances.get_mut(&instance)?;
        if desc.enabled != Enabled::Late {
            return None;
        }
        desc.enabled = Enabled::No;
        Some(noticed)
    }

    fn open(&mut self) -> Instance {
        let instance = Instance(self.opened);
        self.opened += 1;
        let desc = Desc {
            entries: None,
            enabled: Enabled::No,
            mode: Mode::None,
            remote: None,
            closed: false,
        };
        self.instances.insert(instance, desc);
        instance
    }

    /// `kcov_fops_close`.
    fn close(&mut self, instance: Instance) {
        if let Some(source) = self.desc(instance).remote {
            self.disable_source(source);
        }
        self.desc(instance).closed = true;
        self.forget(instance);
    }

    fn ask(&mut self, thread: T, instance: Instance, request: &Request) -> Outcome {
        match request {
            // The kernel copies the argument of every ioctl before it calls the driver.
            Request::SizeUnreadable | Request::EnableUnreadable | Request::AttachUnreadable => {
                Outcome::Refused("EFAULT")
            }
            Request::Size(entries) => self.size(instance, *entries),
            Request::Enable(mode) => self.enable(thread, instance, *mode),
            Request::Disable(_) => self.disable(thread, instance),
            Request::Attach(subsystem, id) if self.kernel.attaches => {
                self.attach(instance, *subsystem, *id)
            }
            Request::Detach if self.kernel.attaches => self.detach(instance),
            _ => INVALID,
        }
    }

    fn misuse(&self, access: Access, call: Call) -> Outcome {
        Outcome::Refused(match call {
            Call::Read | Call::PositionedRead if access == Access::WriteOnly => "EBADF",
            Call::Write | Call::PositionedWrite if access == Access::ReadOnly => "EBADF",
            Call::Read | Call::Write | Call::Stat => "EOPNOTSUPP",
            Call::PositionedRead | Call::PositionedWrite | Call::Seek => "ESPIPE",
            Call::Truncate if self.kernel.attaches => "EOPNOTSUPP",
            Call::Truncate | Call::Sync | Call::Nonblocking | Call::Poll => "EINVAL",
        })
    }

    /// `sys_mmap`, then `kcov_fops_mmap`. Neither checks the access mode of the descriptor.
    fn map(
        &self,
        instance: Instance,
        _: Access,
        geometry: &Geometry,
    ) -> Result<Instance, &'static str> {
        let Geometry { bytes, offset, executable, .. } = *geometry;
        // mmap rounds an offset inside a page down to the page.
        let inside = offset.rem_euclid(page() as i64);
        let (offset, bytes) = (offset - inside, (bytes + inside as u64).next_multiple_of(page()));
        if self.kernel.attaches && bytes == 0 {
            return Err("EINVAL");
        }
        if executable {
            return Err("EACCES");
        }
        if offset < 0 || bytes > MOST_BYTES || offset as u64 > MOST_BYTES {
            return Err("EINVAL");
        }
        let buffer = self.instances[&instance].remote.unwrap_or(instance);
        let size = self.instances[&buffer].entries.unwrap_or(0) * WORD;
        if bytes + offset as u64 > size.next_multiple_of(page()) {
            return Err("ENOMEM");
        }
        Ok(buffer)
    }

    /// On NetBSD 9, mapping no bytes of a missing buffer passes the range check and panics.
    fn outlives(&self, geometry: &Geometry) -> bool {
        self.kernel.attaches || geometry.bytes > 0
    }

    fn remap(&self, _: Remap) -> Outcome {
        Outcome::Anything
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

    fn words(&self, instance: Instance) -> Option<u64> {
        let buffer = self.instances.get(&instance)?.remote.unwrap_or(instance);
        self.instances[&buffer].entries
    }

    fn recording(&self, buffer: Instance) -> Option<Recording> {
        let desc = self.instances.get(&buffer)?;
        let thread = match desc.enabled {
            Enabled::No => return None,
            Enabled::By(thread) => thread,
            Enabled::Late => None,
        };
        Some(Recording { thread, mode: desc.mode, words: desc.entries? })
    }

    /// The kernel explores a port: `kcov_remote_enter`.
    fn background(&self, _: T, _: Work, buffer: Instance, count: u64) -> Outcome {
        match self.recording(buffer) {
            Some(recording) if buffer == EXPLORED && recording.mode != Mode::None => {
                self.counted(recording, count).unwrap_or(Outcome::Anything)
            }
            _ => Outcome::Unchanged,
        }
    }

    /// `__sanitizer_cov_trace_pc` and `trace_cmp`.
    fn counted(&self, recording: Recording, count: u64) -> Option<Outcome> {
        let capacity = recording.mode.capacity(recording.words);
        match recording.mode {
            // Four times the count can wrap.
            Mode::Cmp if count > capacity => None,
            _ if count < capacity => Some(Outcome::Grown(capacity)),
            _ => Some(Outcome::Unchanged),
        }
    }

    /// Sources live as long as the kernel.
    fn outlives_devices(&self, buffer: Instance) -> bool {
        buffer.0 >= SOURCES
    }

    /// Whether each source is enabled. The device stays attached to the last one, because detaching
    /// disables.
    fn shown(&self) -> Vec<(Request, Outcome)> {
        let ask = |port| {
            let refused = match self.recording(Instance(SOURCES + port as u32)) {
                Some(_) => (Request::Enable(1), BUSY),
                None => (Request::Disable(0), NO_ENTRY),
            };
            [(Request::Attach(0, port), Outcome::Done), refused]
        };
        (0..self.kernel.ports).flat_map(ask).collect()
    }
}
