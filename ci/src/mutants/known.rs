//! All data of a campaign.

use super::named::{self, Named, Where};
use super::subject::Subject;
use kcov_vm::error::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// The data: the alterations and their known facts.
pub struct Known {
    /// The mutants.
    pub subject: Subject,
    /// Named alterations of the kernel.
    pub kernel: BTreeMap<Where, Vec<Named>>,
    /// Named alterations of the library.
    pub library: BTreeMap<Where, Vec<Named>>,
}

impl Known {
    /// Reads all data files.
    pub fn load(data: &Path, name: &str) -> Result<Self> {
        let subject = Subject::load(data, name)?;
        let kernel = named::load(data, &subject.named)?;
        let library = match subject.library {
            true => named::load(data, "library")?,
            false => BTreeMap::new(),
        };
        Ok(Self { subject, kernel, library })
    }

    /// Whether it is a named alteration of the kernel.
    pub fn is_of_kernel(&self, name: &str) -> bool {
        self.kernel.values().flatten().any(|named| named.name == name)
    }

    /// Finds a named alteration.
    pub fn named(&self, name: &str) -> Option<&Named> {
        self.kernel.values().chain(self.library.values()).flatten().find(|n| n.name == name)
    }
}
