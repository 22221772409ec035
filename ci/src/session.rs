//! From a target to a finished run.

mod calls;
mod guest;

pub use guest::{Ready, Task};

use crate::cache::Cache;
use crate::error::Result;
use crate::guest::Accel;
use crate::host;
use crate::kernel::{Compiler, Kernel};
use crate::netbsd::{self, Libraries};
use crate::programs::Programs;
use crate::source::{Package, Source};
use crate::target::{Kind, Target, Targets};
use std::time::Duration;

/// What the user chose for all targets.
#[derive(Clone, Debug)]
pub struct Choices {
    /// A source instead of the targets' own.
    pub source: Option<Source>,
    /// Look for newer packages now.
    pub refresh: bool,
    /// Take what was built from the package that is known, without looking for
    /// a newer one, if there is such a kernel.
    pub settled: bool,
    /// A kernel instead of a built one.
    pub kernel: Option<Kernel>,
    /// The same, for NetBSD targets only.
    pub netbsd_kernel: Option<Kernel>,
    /// Instead of the target's `release`.
    pub release: Option<String>,
    /// Jobs for `make`.
    pub jobs: usize,
    /// Instead of the targets' limits.
    pub limit: Option<Duration>,
    /// How much longer a program may take that keeps to the limit by itself.
    pub grace: Duration,
    /// Instead of the targets' own, and of finding out.
    pub accel: Option<Accel>,
}

/// Everything that runs have in common.
#[derive(Debug)]
pub struct Session {
    /// Where things are kept.
    pub cache: Cache,
    /// What there is.
    pub targets: Targets,
    /// What the user chose.
    pub choices: Choices,
    /// The guest's programs.
    pub programs: Programs,
}

impl Session {
    /// The target's source.
    pub fn source(&self, target: &Target) -> Result<Source> {
        match &self.choices.source {
            Some(source) => Ok(source.clone()),
            None => Source::of(target, &self.cache, self.choices.refresh),
        }
    }

    /// Whether the user gave all that nobody else can.
    pub fn given(&self, target: &Target) -> Result<()> {
        match target.kind {
            Kind::Uml | Kind::Qemu => Ok(()),
            Kind::Netbsd => {
                netbsd::given(self.netbsd_kernel().is_some(), self.programs.netbsd.is_some())
            }
        }
    }

    fn netbsd_kernel(&self) -> Option<&Kernel> {
        self.choices.kernel.as_ref().or(self.choices.netbsd_kernel.as_ref())
    }

    fn release<'a>(&'a self, target: &'a Target) -> &'a str {
        self.choices.release.as_ref().unwrap_or(&target.release)
    }

    /// The target's kernel, built if need be.
    pub fn kernel(&self, target: &Target) -> Result<Kernel> {
        self.given(target)?;
        if let (Kind::Netbsd, Some(kernel)) = (target.kind, self.netbsd_kernel()) {
            netbsd::check_kernel(&kernel.file, self.release(target))?;
            self.programs.netbsd.as_ref().map_or(Ok(()), Libraries::check)?;
            return Ok(kernel.clone());
        }
        if let Some(kernel) = &self.choices.kernel {
            return Ok(kernel.clone());
        }
        if self.choices.settled && self.choices.source.is_none() && host::has_compiler() {
            let known = Package::last_known(&target.package, &target.suite, &self.cache);
            let compiler = Compiler::last_known(target, &self.cache)?;
            if let (Some(source), Some(compiler)) = (known.map(Source::Package), compiler) {
                let base = &self.targets.base;
                let built = Kernel::cached(target, &source, &compiler, base, &self.cache)?;
                if let Some(kernel) = built.filter(|kernel| kernel.damage().is_none()) {
                    return Ok(kernel);
                }
            }
        }
        let source = self.source(target)?;
        let Choices { refresh, jobs, .. } = self.choices;
        Kernel::built(target, &source, &self.targets.base, &self.cache, refresh, jobs)
    }
}
