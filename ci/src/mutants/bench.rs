//! The trees that altered kernels are built in.

use crate::cli::MutantsOptions;
use kcov_vm::error::{Error, Result};
use kcov_vm::session::Session;
use kcov_vm::target::Target;
use kcov_vm::{kernel, netbsd};
use std::path::{Path, PathBuf};

/// A tree with one altered file. The inner errors are the compiler's messages.
#[derive(Debug)]
pub enum Bench {
    /// A Linux tree in the cache.
    Linux(kernel::Bench),
    /// The user's NetBSD tree.
    Netbsd(netbsd::Bench),
}

impl Bench {
    /// Opens the tree of a Linux target.
    pub fn linux(session: &Session, target: &Target, file: &str) -> Result<Self> {
        let source = session.source(target)?;
        let (cache, jobs) = (&session.cache, session.choices.jobs);
        kernel::Bench::open(target, &source, cache, jobs, file).map(Self::Linux)
    }

    /// Opens the user's tree.
    pub fn netbsd(
        session: &Session,
        tree: Option<&Path>,
        options: &MutantsOptions,
        file: &str,
    ) -> Result<Self> {
        netbsd::given(true, session.programs.netbsd.is_some())?;
        let tree = tree.ok_or_else(|| {
            Error::usage("--source: needs the tree of NetBSD's sources; see `--help`")
        })?;
        let command = options.command.clone().filter(|command| command.contains("{kernel}"));
        let command = command.ok_or_else(|| {
            let why = "--build: needs a command that leaves a kernel at {kernel}; see `--help`";
            Error::usage(why)
        })?;
        let recipe = netbsd::BenchRecipe { tree: tree.to_path_buf(), command };
        netbsd::Bench::open(&recipe, file, &session.cache).map(Self::Netbsd)
    }

    /// The text of the unaltered file.
    pub fn original(&self) -> &str {
        match self {
            Self::Linux(bench) => bench.original(),
            Self::Netbsd(bench) => bench.original(),
        }
    }

    /// Compiles this text in place of the file. Equal results are the same code.
    pub fn compile(&self, text: &str) -> Result<std::result::Result<Vec<u8>, String>> {
        match self {
            Self::Linux(bench) => bench.compile(text),
            Self::Netbsd(bench) => bench.compile(text),
        }
    }

    /// Returns the kernel with the last compiled text. The next one replaces it.
    pub fn link(&self) -> Result<std::result::Result<PathBuf, String>> {
        match self {
            Self::Linux(bench) => bench.link(),
            Self::Netbsd(bench) => Ok(Ok(bench.kernel().to_path_buf())),
        }
    }

    /// The files that belong beside the linked kernel.
    pub fn beside(&self) -> Vec<PathBuf> {
        match self {
            Self::Linux(bench) => bench.beside(),
            Self::Netbsd(_) => Vec::new(),
        }
    }
}
