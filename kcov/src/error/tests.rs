//! Every row of the tables, as text.

use super::*;
use crate::system::{LINUX, NETBSD};
use std::collections::HashSet;

#[test]
fn no_errno_of_an_operation_has_two_rows() {
    for system in [&LINUX, &NETBSD] {
        let mut seen = HashSet::new();
        for row in system.errors.iter().copied().flatten() {
            let new = seen.insert((row.operation, row.errno));
            assert!(new, "{:?} {}", row.operation, row.errno);
        }
    }
}

#[test]
fn an_unknown_errno_is_kept() {
    let error = Error::from_errno(&LINUX, Operation::Enable, 9999);
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Other, Some(9999)));
    assert_eq!(error.help(), None);
    insta::assert_snapshot!(error.to_string());
}

impl Error {
    /// The accepted sizes in words, if a size was refused.
    pub(crate) fn limits(&self) -> Option<&RangeInclusive<u64>> {
        self.size.as_ref().map(|(_, limits)| limits)
    }
}
