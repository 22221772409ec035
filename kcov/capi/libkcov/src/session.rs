//! A device, for languages that cannot use the header `kcov.h`.

use crate::failure::{Failure, Handle as _, enter, guard, handle, kcov_failure};
use crate::kernel::{KCOV_RECORD_CMP, KCOV_RECORD_PC};
use crate::memory::{Output, given, path};
use kcov::mode::AnyMode;
use kcov::{BufferSize, Completeness, Device, Recorded, Session, Trace};
use std::ffi::{c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, Weak};

/// An open device with its buffer. At most one thread at a time is traced into it.
pub struct kcov_session(Mutex<Tracer>);
handle!(kcov_session: Tracer);

/// The records of a session. `words` is the first of `records * words_per_record` words in the
/// buffer, or NULL under a 32-bit kernel: use kcov_session_copy there.
#[repr(C)]
#[derive(Debug)]
pub struct kcov_records {
    pub words: *const u64,
    pub records: usize,
    pub words_per_record: u32,
    /// KCOV_RECORDS_COMPLETE, KCOV_RECORDS_TRUNCATED or KCOV_RECORDS_CORRUPT
    pub completeness: u32,
}

/// There was room for every record.
pub const KCOV_RECORDS_COMPLETE: u32 = 0;
/// The buffer is full, so records may be missing.
pub const KCOV_RECORDS_TRUNCATED: u32 = 1;
/// The target or another process wrote to the buffer. There are no records.
pub const KCOV_RECORDS_CORRUPT: u32 = 2;

pub(crate) struct Tracer {
    state: State,
    /// From a `Box`. Only `state` refers to it.
    device: NonNull<Device>,
}

enum State {
    Idle,
    Enabled(Weak<()>, Session<AnyMode, &'static mut Device>),
    Disabled(Recorded<AnyMode, &'static mut Device>),
}

thread_local! {
    /// Identifies the thread, and is gone when it ends.
    static THREAD: Arc<()> = Arc::new(());
}

fn this_thread() -> Weak<()> {
    // A thread that is ending counts as ended.
    THREAD.try_with(Arc::downgrade).unwrap_or_default()
}

impl Tracer {
    pub(crate) fn new(device: Device) -> Tracer {
        Tracer { state: State::Idle, device: NonNull::from(Box::leak(Box::new(device))) }
    }

    fn enable(&mut self, mode: AnyMode) -> Result<(), Failure> {
        self.check_thread()?;
        if matches!(&self.state, State::Enabled(thread, _) if thread.strong_count() > 0) {
            let kind = kcov_failure::AlreadyEnabled;
            return Err(Failure::new(kind, "the session is enabled; disable it first"));
        }
        self.state = State::Idle;
        // SAFETY: from a box, and `state` no longer refers to it.
        let device = unsafe { self.device.as_mut() };
        self.state = State::Enabled(this_thread(), device.enable(mode)?);
        Ok(())
    }

    /// Refuses this thread while another one is traced. When a thread ends, its tracing ends.
    fn check_thread(&self) -> Result<(), Failure> {
        match &self.state {
            State::Enabled(thread, _)
                if thread.strong_count() > 0 && !thread.ptr_eq(&this_thread()) =>
            {
                Err(Failure::new(
                    kcov_failure::WrongThread,
                    "another thread is traced; make this call in the thread that enabled",
                ))
            }
            _ => Ok(()),
        }
    }

    fn disable(&mut self) -> Result<(), Failure> {
        self.check_thread()?;
        let State::Enabled(_, session) = std::mem::replace(&mut self.state, State::Idle) else {
            return Err(not_enabled());
        };
        self.state = State::Disabled(session.disable()?);
        Ok(())
    }

    fn trace(&self) -> Result<Trace<'_, AnyMode>, Failure> {
        self.check_thread()?;
        match &self.state {
            State::Idle => Err(not_enabled()),
            State::Enabled(_, session) => Ok(session.trace()),
            State::Disabled(recorded) => Ok(recorded.trace()),
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.state = State::Idle;
        // SAFETY: from a box, and `state` no longer refers to it.
        drop(unsafe { Box::from_raw(self.device.as_ptr()) });
    }
}

fn not_enabled() -> Failure {
    Failure::new(kcov_failure::NotEnabled, "the session is not enabled; enable it first")
}

/// Opens a device: the one at `path`, or the system's if that is NULL. `words` is the size of the
/// buffer, or 0 for 262144 words. NULL with the reason why on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_session_open(
    path: *const c_char,
    words: u64,
) -> Option<Box<kcov_session>> {
    guard("kcov_session_open", None, || {
        let mut builder = Device::builder();
        // SAFETY: as the header demands.
        if let Some(path) = unsafe { self::path(path) } {
            builder = builder.path(path);
        }
        if words > 0 {
            builder = builder.size(BufferSize::words(words));
        }
        Ok(Some(kcov_session::new(Tracer::new(builder.open()?))))
    })
}

/// Starts tracing of the calling thread, with no records. `mode` is KCOV_RECORD_PC or
/// KCOV_RECORD_CMP. Until kcov_session_disable, only this thread may use the session. 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_session_enable(session: *mut kcov_session, mode: u32) -> c_int {
    guard("kcov_session_enable", -1, || {
        let mode = match mode {
            KCOV_RECORD_PC => AnyMode::TracePc,
            KCOV_RECORD_CMP => AnyMode::TraceCmp,
            _ => return Err(Failure::argument(format!("unknown `mode`: {mode}"))),
        };
        // SAFETY: as the header demands.
        unsafe { enter(session) }?.enable(mode).map(|()| 0)
    })
}

/// Ends tracing. The records stay in the buffer, and no longer change. 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_session_disable(session: *mut kcov_session) -> c_int {
    guard("kcov_session_disable", -1, || {
        // SAFETY: as the header demands.
        unsafe { enter(session) }?.disable().map(|()| 0)
    })
}

/// Forgets the records of an enabled session, by one store. 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_session_reset(session: *mut kcov_session) -> c_int {
    guard("kcov_session_reset", -1, || {
        // SAFETY: as the header demands.
        let mut tracer = unsafe { enter(session) }?;
        tracer.check_thread()?;
        match &mut tracer.state {
            State::Enabled(_, session) => session.reset(),
            _ => return Err(not_enabled()),
        }
        Ok(0)
    })
}

/// Describes the records in the buffer: those until now, or until kcov_session_disable. The words
/// are valid until the session is enabled again or freed. While it is enabled the kernel appends to
/// them; load them atomically. 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_session_records(
    session: *mut kcov_session,
    out: Option<&mut kcov_records>,
) -> c_int {
    guard("kcov_session_records", -1, || {
        let out = given(out, "out")?;
        // SAFETY: as the header demands.
        let tracer = unsafe { enter(session) }?;
        let trace = tracer.trace()?;
        *out = kcov_records {
            words: trace.words().as_ptr().unwrap_or(ptr::null()),
            records: trace.len(),
            words_per_record: if trace.mode() == AnyMode::TraceCmp { 4 } else { 1 },
            completeness: match trace.completeness() {
                Completeness::Complete => KCOV_RECORDS_COMPLETE,
                Completeness::Truncated => KCOV_RECORDS_TRUNCATED,
                _ => KCOV_RECORDS_CORRUPT,
            },
        };
        Ok(0)
    })
}

/// Copies the words of the records, also the 32-bit words of a 32-bit kernel. Returns their number,
/// or -1, and stores the first `capacity` of them to `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_session_copy(
    session: *mut kcov_session,
    out: *mut u64,
    capacity: usize,
) -> i64 {
    guard("kcov_session_copy", -1, || {
        // SAFETY: as the header demands.
        let out = unsafe { Output::new(out, capacity) }?;
        // SAFETY: as the header demands.
        let tracer = unsafe { enter(session) }?;
        let words = tracer.trace()?.words();
        Ok(out.fill((0..words.len()).filter_map(|index| words.get(index))))
    })
}

/// Closes the device, and ends tracing of this thread. 0; -1 and nothing else if the session is
/// NULL, in use, or another thread is traced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcov_session_free(session: *mut kcov_session) -> c_int {
    guard("kcov_session_free", -1, || {
        // SAFETY: as the header demands.
        match unsafe { enter(session) } {
            Ok(tracer) => tracer.check_thread()?,
            Err(failure) if failure.is_defect() => {}
            Err(failure) => return Err(failure),
        }
        // SAFETY: from a box, and as the header demands, nobody uses it any more.
        drop(unsafe { Box::from_raw(session) });
        Ok(0)
    })
}
