//! From a target to a finished run.

mod calls;
mod guest;

pub use guest::{Ready, SILENT, STDIN, Task};

use crate::arch::Arch;
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::kernel::{Compiler, Kernel};
use crate::netbsd;
use crate::programs::Programs;
use crate::source::Source;
use crate::target::{Accel, Kind, Target, Targets};
use std::time::Duration;

/// The user's choices for all targets.
#[derive(Clone, Debug)]
pub struct Choices {
    /// Replaces the targets' own sources.
    pub source: Option<Source>,
    /// Use the kernel of the known package, if it is built, without a search for a newer package.
    pub settled: bool,
    /// A kernel to use instead of building one.
    pub kernel: Option<Kernel>,
    /// The same, for NetBSD targets only.
    pub netbsd_kernel: Option<Kernel>,
    /// Replaces the target's `release`.
    pub release: Option<String>,
    /// Replaces the targets' limits.
    pub limit: Option<Duration>,
    /// Additional time for a program that enforces the limit itself.
    pub grace: Duration,
    /// Replaces the probe.
    pub accel: Option<Accel>,
}

/// The state that all runs share.
#[derive(Debug)]
pub struct Session {
    /// The cache.
    pub cache: Cache,
    /// All targets.
    pub targets: Targets,
    /// The user's choices.
    pub choices: Choices,
    /// The guest programs.
    pub programs: Programs,
}

impl Session {
    /// Returns the target's source.
    pub fn source(&self, target: &Target) -> Result<Source> {
        match &self.choices.source {
            Some(source) => Ok(source.clone()),
            None => Source::of(target, &self.cache),
        }
    }

    /// Checks that the host suits the target, and that the user gave every option that it requires.
    pub fn given(&self, target: &Target) -> Result<()> {
        match target.kind {
            Kind::Uml => Arch::host().check_user_mode(target.arch).map_err(Error::NotGiven),
            Kind::Qemu => Ok(()),
            Kind::Netbsd => {
                netbsd::given(self.netbsd_kernel().is_some(), self.programs.netbsd.is_some())
            }
        }
    }

    /// Returns the user's kernel for NetBSD targets.
    pub(crate) fn netbsd_kernel(&self) -> Option<&Kernel> {
        self.choices.kernel.as_ref().or(self.choices.netbsd_kernel.as_ref())
    }

    fn release<'a>(&'a self, target: &'a Target) -> &'a str {
        self.choices.release.as_ref().unwrap_or(&target.release)
    }

    /// Returns the target's kernel and builds it if necessary.
    pub fn kernel(&self, target: &Target) -> Result<Kernel> {
        self.given(target)?;
        if let (Kind::Netbsd, Some(kernel)) = (target.kind, self.netbsd_kernel()) {
            netbsd::check_kernel(&kernel.file, self.release(target))?;
            return Ok(kernel.clone());
        }
        if let Some(kernel) = &self.choices.kernel {
            return Ok(kernel.clone());
        }
        if self.choices.settled && self.choices.source.is_none() {
            let known = Source::last_known(target, &self.cache);
            if let (Some(source), Ok(compiler)) = (known, Compiler::of(target)) {
                let built = Kernel::cached(target, &source, &compiler, &self.cache)?;
                if let Some(kernel) = built {
                    return Ok(kernel);
                }
            }
        }
        let source = self.source(target)?;
        Kernel::built(target, &source, &self.cache)
    }
}
