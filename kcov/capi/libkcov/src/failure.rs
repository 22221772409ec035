//! Failures: a kind, and a sentence in the thread that failed.

use kcov::ErrorKind;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// What was wrong. Programs must expect kinds that later versions add.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum kcov_failure {
    /// Nothing has failed in this thread.
    None = 0,
    /// An argument is NULL, misaligned or out of limits.
    InvalidArgument = 1,
    /// Another thread must make this call: the one that enabled.
    WrongThread = 2,
    /// Another thread is using the handle.
    Busy = 3,
    /// A file or shared memory cannot be used.
    File = 4,
    /// The running kernel's text cannot be found.
    KernelText = 5,
    /// A defect of this library. The handle can only be freed.
    Defect = 6,
    /// An error of the device that this version has no kind for.
    Other = 100,
    Unsupported = 101,
    NotBuiltIn = 102,
    DebugfsNotMounted = 103,
    PermissionDenied = 104,
    LockedDown = 105,
    NotKcov = 106,
    SizeOutOfLimits = 107,
    DescriptorOutOfLimits = 108,
    ThreadOutOfLimits = 109,
    BufferLost = 110,
    ModeNotBuiltIn = 111,
    NotInstrumented = 112,
    AlreadyEnabled = 113,
    NotEnabled = 114,
    OutOfMemory = 115,
}

use kcov_failure as Kind;

/// A failed call.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl ToString) -> Failure {
        Failure { kind, message: message.to_string() }
    }

    pub(crate) fn argument(message: impl ToString) -> Failure {
        Failure::new(Kind::InvalidArgument, message)
    }

    /// Whether a defect broke the handle.
    pub(crate) fn is_defect(&self) -> bool {
        self.kind == Kind::Defect
    }

    pub(crate) fn file(message: impl ToString) -> Failure {
        Failure::new(Kind::File, message)
    }
}

impl From<kcov::Error> for Failure {
    fn from(error: kcov::Error) -> Failure {
        macro_rules! same {
            ($($kind:ident)*) => {
                match error.kind() {
                    $(ErrorKind::$kind => Kind::$kind,)*
                    _ => Kind::Other,
                }
            };
        }
        let kind = same!(
            Unsupported NotBuiltIn DebugfsNotMounted PermissionDenied LockedDown NotKcov
            SizeOutOfLimits DescriptorOutOfLimits ThreadOutOfLimits BufferLost ModeNotBuiltIn
            NotInstrumented AlreadyEnabled NotEnabled OutOfMemory
        );
        Failure::new(kind, error)
    }
}

thread_local! {
    static LAST: RefCell<(Kind, Cow<'static, CStr>)> =
        const { RefCell::new((Kind::None, Cow::Borrowed(c""))) };
}

/// Runs the body of an exported function. A failure or a panic becomes the thread's last failure.
pub(crate) fn guard<T>(function: &str, failed: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    // What a panic leaves half done is in a mutex, which stays poisoned.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Kind::Defect, "a defect of libkcov; please report it"),
    };
    let message = format!("{function}: {}", failure.message).replace('\0', "?");
    // A thread that is ending has no last failure.
    let _ = LAST.try_with(|last| {
        *last.borrow_mut() = (failure.kind, CString::new(message).unwrap_or_default().into());
    });
    failed
}

/// A handle's content. Each handle is an opaque struct of its own, so that C tells them apart.
pub(crate) trait Handle {
    type Content;
    fn new(content: Self::Content) -> Box<Self>;
    fn mutex(&self) -> &Mutex<Self::Content>;
}

macro_rules! handle {
    ($handle:ident: $content:ty) => {
        impl crate::failure::Handle for $handle {
            type Content = $content;

            fn new(content: $content) -> Box<$handle> {
                Box::new($handle(Mutex::new(content)))
            }

            fn mutex(&self) -> &Mutex<$content> {
                &self.0
            }
        }
    };
}
pub(crate) use handle;

/// Locks a handle, unless another thread has.
///
/// # Safety
///
/// Unless it is NULL, this library must have returned the handle, and nobody may free it during
/// `'a`.
pub(crate) unsafe fn enter<'a, H: Handle + 'a>(
    handle: *mut H,
) -> Result<MutexGuard<'a, H::Content>, Failure> {
    if handle.is_null() || !handle.is_aligned() {
        return Err(Failure::argument("the handle is NULL or misaligned; pass one of libkcov"));
    }
    // SAFETY: not NULL and aligned; the caller promises the rest.
    let handle = unsafe { &*handle };
    handle.mutex().try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            Failure::new(Kind::Busy, "another thread is using the handle; give each thread its own")
        }
        TryLockError::Poisoned(_) => {
            Failure::new(Kind::Defect, "the handle is broken since a defect of libkcov; free it")
        }
    })
}

/// Drops a handle. NULL is allowed.
pub(crate) fn free<H>(handle: Option<Box<H>>) {
    guard("free", (), || {
        drop(handle);
        Ok(())
    });
}

/// The kind of the last failed call of this thread. A successful call does not change it.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_last_failure() -> kcov_failure {
    LAST.try_with(|last| last.borrow().0).unwrap_or(Kind::None)
}

/// One sentence about the last failed call of this thread: the function, what was wrong, and what
/// to do. Empty if no call has failed. Valid until the next failed call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn kcov_last_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().1.as_ptr()).unwrap_or(c"".as_ptr())
}
