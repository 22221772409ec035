//! An open device: a file descriptor of the host, or one of a fake kernel.

use super::{Number, Request, host};
use crate::error::{Error, ErrorKind, Operation};
#[cfg(feature = "fake")]
use crate::fake;
use crate::system::System;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum File {
    /// A descriptor, and the path that was opened, if this crate opened it.
    Kernel(host::File, Option<Arc<Path>>),
    #[cfg(feature = "fake")]
    Fake(fake::Descriptor),
}

impl File {
    /// Opens a file. If `checked`, also verifies that it is a kcov device.
    pub(crate) fn open(path: &Path, checked: bool) -> Result<File, Error> {
        let opened: Arc<Path> = path.into();
        let refuse = |errno| {
            let error =
                Error::from_errno(host::SYSTEM, Operation::Open, errno).with_path(Some(&opened));
            match host::explain_open(path, errno) {
                Some(kind) => error.with_kind(kind),
                None => error,
            }
        };
        let file = host::open(path).map_err(refuse)?;
        if checked && !host::is_kcov(path, &file) {
            return Err(Error::new(Operation::Open, ErrorKind::NotKcov).with_path(Some(&opened)));
        }
        Ok(File::Kernel(file, Some(opened)))
    }

    /// Moves the open file to another descriptor.
    pub(crate) fn move_to(self, number: Number) -> Result<File, Error> {
        match self {
            File::Kernel(file, path) => match host::move_to(file, number) {
                Ok(file) => Ok(File::Kernel(file, path)),
                Err(errno) => {
                    let error = Error::from_errno(host::SYSTEM, Operation::MoveDescriptor, errno);
                    Err(error.with_path(path.as_ref()))
                }
            },
            #[cfg(feature = "fake")]
            File::Fake(file) => Ok(File::Fake(file)),
        }
    }

    /// Makes a request. Returns the errno on failure.
    pub(crate) fn request(&self, request: Request<'_>) -> Result<(), i32> {
        match self {
            File::Kernel(file, _) => host::request(file, request),
            #[cfg(feature = "fake")]
            File::Fake(file) => file.request(request),
        }
    }

    /// The system whose rules the file follows.
    pub(crate) fn system(&self) -> &'static System {
        match self {
            File::Kernel(..) => host::SYSTEM,
            #[cfg(feature = "fake")]
            File::Fake(file) => file.system(),
        }
    }

    pub(crate) fn error(&self, operation: Operation) -> impl Fn(i32) -> Error {
        move |errno| Error::from_errno(self.system(), operation, errno).with_path(self.path())
    }

    /// The path that was opened.
    pub(crate) fn path(&self) -> Option<&Arc<Path>> {
        match self {
            File::Kernel(_, path) => path.as_ref(),
            #[cfg(feature = "fake")]
            File::Fake(_) => None,
        }
    }
}

#[cfg(unix)]
mod descriptor {
    use super::File;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    impl AsFd for File {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self {
                File::Kernel(file, _) => file.as_fd(),
                #[cfg(feature = "fake")]
                File::Fake(file) => file.as_fd(),
            }
        }
    }

    #[allow(clippy::useless_conversion, reason = "on other systems the file is a type of its own")]
    impl From<File> for OwnedFd {
        #[allow(clippy::useless_conversion, reason = "where there is no kcov the types differ")]
        fn from(file: File) -> OwnedFd {
            match file {
                File::Kernel(file, _) => file,
                #[cfg(feature = "fake")]
                File::Fake(file) => file.into(),
            }
        }
    }
}
