//! The trees that mutants are built in.

use kcov_vm::error::Result;
use kcov_vm::{kernel, netbsd};
use std::path::PathBuf;

/// A tree with one altered file. The inner errors are the compiler's messages.
#[derive(Debug)]
pub enum Bench {
    /// A Linux tree in the cache.
    Linux(kernel::Bench),
    /// The user's NetBSD tree.
    Netbsd(netbsd::Bench),
}

impl Bench {
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
