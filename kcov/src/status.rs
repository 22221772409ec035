//! What this machine's kcov can do, found by trying.

use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{AnyMode, Mode};
use crate::proposed::{self, Proposals};
use crate::size::BufferSize;
use crate::sys;
use std::fmt;
use std::path::Path;
use std::thread;

/// The state of kcov on this machine, as far as this process may know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// This crate knows no kcov on this system.
    Unsupported,
    /// The kernel has no kcov.
    NotBuiltIn,
    /// Linux: debugfs is not mounted, so nothing more is known.
    DebugfsNotMounted,
    /// The process may not open the device.
    PermissionDenied,
    /// Linux: kernel lockdown closes the device.
    LockedDown,
    /// The device works and records.
    Available(Modes),
    /// The device works in these modes and records nothing: the kernel's code is not instrumented.
    Silent(Modes),
    /// Something else is in the way.
    Failed(Error),
}

/// The modes that a kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    none: bool,
    pc: bool,
    cmp: bool,
    proposals: Proposals,
}

impl Modes {
    /// Whether the kernel has the mode.
    #[must_use]
    pub fn contains<M: Mode>(&self, mode: M) -> bool {
        match mode.any() {
            AnyMode::TraceNone => self.none,
            AnyMode::TracePc => self.pc,
            AnyMode::TraceCmp => self.cmp,
            AnyMode::TracePcExt(_) => self.proposals.trace_pc_ext().is_some(),
            AnyMode::UniqPc(_) => self.proposals.uniq_pc().is_some(),
            AnyMode::UniqCmp(_) => self.proposals.uniq_cmp().is_some(),
        }
    }

    /// What the kernel has of what is [proposed] and in no released kernel.
    #[must_use]
    pub fn proposals(&self) -> Proposals {
        self.proposals
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = AnyMode::ALL.iter().filter(|mode| self.contains(**mode));
        f.write_str(&names.map(ToString::to_string).collect::<Vec<_>>().join(", "))?;
        match self.proposals.to_string() {
            none if none.is_empty() => Ok(()),
            some => write!(f, "; proposed: {some}"),
        }
    }
}

impl Status {
    /// Tries the system's device.
    ///
    /// Everything happens on a descriptor and a thread of its own, which are gone afterwards: the
    /// caller may be traced meanwhile, and nothing is left enabled.
    #[must_use]
    pub fn probe() -> Status {
        Status::probe_path(sys::DEFAULT_PATH)
    }

    /// Tries the device at a path.
    #[must_use]
    pub fn probe_path(path: impl AsRef<Path>) -> Status {
        let path = path.as_ref();
        let tried = thread::scope(|scope| {
            let thread = thread::Builder::new().name("kcov-probe".into());
            thread.spawn_scoped(scope, || try_modes(path)).ok()?.join().ok()
        });
        tried.unwrap_or_else(|| Status::Failed(Error::new(Operation::Open, ErrorKind::OutOfMemory)))
    }
}

/// Room for a bitmap with a bit for each basic block of a kernel.
const SIZE: BufferSize = BufferSize::words(32 << 10);

fn try_modes(path: &Path) -> Status {
    let mut device = match Device::builder().path(path).size(SIZE).open() {
        Ok(device) => device,
        Err(error) => return error.into(),
    };
    let mut modes = Modes::default();
    let mut records = 0;
    for &mode in AnyMode::ALL {
        match device.enable(mode) {
            Ok(session) => {
                sys::provoke();
                records += session.trace().len();
                match mode {
                    AnyMode::TraceNone => modes.none = true,
                    AnyMode::TracePc => modes.pc = true,
                    _ => modes.cmp = true,
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ModeNotBuiltIn | ErrorKind::ModeNotSupported
                ) => {}
            Err(error) => return error.into(),
        }
    }
    match proposed::probe(device) {
        Ok(proposals) => modes.proposals = proposals,
        Err(error) => return error.into(),
    }
    if records > 0 { Status::Available(modes) } else { Status::Silent(modes) }
}

impl From<Error> for Status {
    fn from(error: Error) -> Status {
        match error.kind() {
            ErrorKind::Unsupported => Status::Unsupported,
            ErrorKind::NotBuiltIn => Status::NotBuiltIn,
            ErrorKind::DebugfsNotMounted => Status::DebugfsNotMounted,
            ErrorKind::PermissionDenied => Status::PermissionDenied,
            ErrorKind::LockedDown => Status::LockedDown,
            _ => Status::Failed(error),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Unsupported => f.write_str("kcov is not supported on this system"),
            Status::NotBuiltIn => f.write_str("this kernel has no kcov"),
            Status::DebugfsNotMounted => f.write_str("debugfs is not mounted"),
            Status::PermissionDenied => f.write_str("permission denied"),
            Status::LockedDown => f.write_str("kernel lockdown closes the device"),
            Status::Available(modes) => write!(f, "available (modes: {modes})"),
            Status::Silent(modes) => {
                write!(f, "present (modes: {modes}), but no kernel code is instrumented")
            }
            Status::Failed(error) => error.fmt(f),
        }
    }
}
