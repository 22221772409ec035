//! The names of threads, descriptors and mappings in an operation.

use super::{Operation, T};

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A thread.
    Thread,
    /// A descriptor.
    Descriptor,
    /// A mapping.
    Mapping,
}

impl Operation {
    /// The acting thread.
    #[must_use]
    pub fn thread(&self) -> T {
        match *self {
            Operation::Open { thread, .. }
            | Operation::Duplicate { thread, .. }
            | Operation::Pass { thread, .. }
            | Operation::Close { thread, .. }
            | Operation::Ask { thread, .. }
            | Operation::Misuse { thread, .. }
            | Operation::Map { thread, .. }
            | Operation::Unmap { thread, .. }
            | Operation::Remap { thread, .. }
            | Operation::Trace { thread, .. }
            | Operation::Background { thread, .. }
            | Operation::Store { thread, .. }
            | Operation::Load { thread, .. }
            | Operation::StartThread { thread, .. }
            | Operation::EndThread { thread }
            | Operation::Fork { thread, .. }
            | Operation::Execute { thread, .. }
            | Operation::Exit { thread }
            | Operation::Kill { thread } => thread,
        }
    }

    /// Visits all names with their kinds.
    pub fn visit_names(&mut self, mut see: impl FnMut(Kind, &mut u32)) {
        match self {
            Operation::Duplicate { thread, descriptor, new } => {
                see(Kind::Thread, &mut thread.0);
                see(Kind::Descriptor, &mut descriptor.0);
                see(Kind::Descriptor, &mut new.0);
            }
            Operation::Pass { thread, descriptor, to, new } => {
                see(Kind::Thread, &mut thread.0);
                see(Kind::Descriptor, &mut descriptor.0);
                see(Kind::Thread, &mut to.0);
                see(Kind::Descriptor, &mut new.0);
            }
            Operation::Open { thread, descriptor, .. }
            | Operation::Close { thread, descriptor }
            | Operation::Ask { thread, descriptor, .. }
            | Operation::Misuse { thread, descriptor, .. } => {
                see(Kind::Thread, &mut thread.0);
                see(Kind::Descriptor, &mut descriptor.0);
            }
            Operation::Map { thread, descriptor, map, .. } => {
                see(Kind::Thread, &mut thread.0);
                see(Kind::Descriptor, &mut descriptor.0);
                see(Kind::Mapping, &mut map.0);
            }
            Operation::Unmap { thread, map }
            | Operation::Remap { thread, map, .. }
            | Operation::Trace { thread, map, .. }
            | Operation::Background { thread, map, .. }
            | Operation::Store { thread, map, .. }
            | Operation::Load { thread, map } => {
                see(Kind::Thread, &mut thread.0);
                see(Kind::Mapping, &mut map.0);
            }
            Operation::StartThread { thread, new } | Operation::Fork { thread, new } => {
                see(Kind::Thread, &mut thread.0);
                see(Kind::Thread, &mut new.0);
            }
            Operation::EndThread { thread }
            | Operation::Execute { thread, .. }
            | Operation::Exit { thread }
            | Operation::Kill { thread } => see(Kind::Thread, &mut thread.0),
        }
    }

    /// The kinds of all names.
    #[must_use]
    pub fn names(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        self.clone().visit_names(|kind, _| kinds.push(kind));
        kinds
    }

    /// Renames one name of this kind.
    pub fn rename(&mut self, wanted: Kind, old: u32, new: u32) {
        self.visit_names(|kind, name| {
            if kind == wanted && *name == old {
                *name = new;
            }
        });
    }

    /// If the operation creates another name for an existing object: the kind, the new name and the
    /// old one.
    #[must_use]
    pub fn copies(&self) -> Option<(Kind, u32, u32)> {
        match self {
            Operation::StartThread { thread, new } | Operation::Fork { thread, new } => {
                Some((Kind::Thread, new.0, thread.0))
            }
            Operation::Duplicate { descriptor, new, .. }
            | Operation::Pass { descriptor, new, .. } => {
                Some((Kind::Descriptor, new.0, descriptor.0))
            }
            _ => None,
        }
    }
}
