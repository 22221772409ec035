//! Finds out what this machine's kcov supports, by trying it.

use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{AnyMode, Mode, SEAL};
use crate::size::BufferSize;
use crate::sys;
use std::fmt;
use std::path::Path;
use std::thread;

/// The modes that a kernel's kcov supports.
///
/// ```no_run
/// use kcov::{Modes, mode::TraceCmp};
///
/// if Modes::probe()?.contains(TraceCmp) {
///     println!("with comparisons");
/// }
/// # Ok::<(), kcov::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// In the order of [`AnyMode::ALL`].
    found: [bool; AnyMode::ALL.len()],
    #[cfg(feature = "proposed")]
    proposals: crate::proposed::Proposals,
}

impl Modes {
    /// Opens the system's device, enables each mode, and checks that something is recorded.
    ///
    /// Uses a descriptor and a thread of its own: the caller may be traced, and nothing stays
    /// enabled.
    ///
    /// # Errors
    ///
    /// - Same as [`Builder::open`](crate::Builder::open).
    /// - [`ThreadOutOfLimits`](ErrorKind::ThreadOutOfLimits): the system starts no thread.
    /// - [`NotInstrumented`](ErrorKind::NotInstrumented): the device works and records nothing.
    pub fn probe() -> Result<Modes, Error> {
        Modes::probe_path(sys::DEFAULT_PATH)
    }

    /// Probes the device at a path, as [`probe`](Self::probe) does.
    ///
    /// # Errors
    ///
    /// Same as [`probe`](Self::probe).
    pub fn probe_path(path: impl AsRef<Path>) -> Result<Modes, Error> {
        let path = path.as_ref();
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("kcov-probe".into());
            let thread = thread.spawn_scoped(scope, || probe(path)).map_err(|error| {
                Error::from_errno(
                    sys::SYSTEM,
                    Operation::StartThread,
                    error.raw_os_error().unwrap_or(0),
                )
            })?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Whether the kernel has the mode.
    pub fn contains<M: Mode>(self, mode: M) -> bool {
        let kind = mode.kind(SEAL);
        match AnyMode::ALL.iter().position(|mode| mode.kind(SEAL) == kind) {
            Some(number) => self.found[number],
            #[cfg(feature = "proposed")]
            None => self.proposals.contains(kind),
            #[cfg(not(feature = "proposed"))]
            None => false,
        }
    }

    /// Which [proposals](crate::proposed), found in no released kernel, this kernel implements.
    #[cfg(feature = "proposed")]
    pub fn proposals(self) -> crate::proposed::Proposals {
        self.proposals
    }
}

/// The names of the modes, separated by commas.
impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["PC", "CMP"].into_iter().zip(self.found).filter(|(_, found)| *found);
        f.write_str(&names.map(|(name, _)| name).collect::<Vec<_>>().join(", "))?;
        #[cfg(feature = "proposed")]
        match self.proposals.to_string() {
            none if none.is_empty() => {}
            some => write!(f, "; proposed: {some}")?,
        }
        Ok(())
    }
}

/// Room for a bitmap with one bit per basic block of a kernel.
const SIZE: BufferSize = BufferSize::words(32 << 10);

fn probe(path: &Path) -> Result<Modes, Error> {
    let mut device = Device::builder().path(path).size(SIZE).open()?;
    let mut modes = Modes::default();
    let mut records = 0;
    for (mode, found) in AnyMode::ALL.iter().zip(&mut modes.found) {
        let session = match device.enable(*mode) {
            Ok(session) => session,
            Err(error) if error.kind() == ErrorKind::ModeNotBuiltIn => continue,
            Err(error) => return Err(error),
        };
        sys::provoke();
        records += session.disable()?.trace().len();
        *found = true;
    }
    if records == 0 {
        return Err(Error::new(Operation::Enable, ErrorKind::NotInstrumented));
    }
    #[cfg(feature = "proposed")]
    {
        modes.proposals = crate::proposed::probe(device)?;
    }
    Ok(modes)
}
