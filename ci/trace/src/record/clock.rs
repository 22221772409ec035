//! A timer whose signal interrupts waiting, and the time limit.

use nix::errno::Errno;
use nix::sys::signal::{
    SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two signals. Longer periods let threads fill their buffers.
const PERIOD: Duration = Duration::from_millis(5);

/// Interrupts waiting once per period.
pub struct Clock {
    _timer: Timer,
    end: Option<Instant>,
}

static TICKED: AtomicBool = AtomicBool::new(false);

extern "C" fn tick(_: libc::c_int) {
    TICKED.store(true, Ordering::Relaxed);
}

impl Clock {
    /// Starts the timer, and the time until the limit in seconds.
    pub fn start(limit: Option<u32>) -> Result<Clock, Errno> {
        let action = SigAction::new(SigHandler::Handler(tick), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler stores to an atomic, which is safe in a handler.
        unsafe { sigaction(Signal::SIGALRM, &action) }?;
        let notify = SigevNotify::SigevSignal { signal: Signal::SIGALRM, si_value: 0 };
        let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify))?;
        timer.set(Expiration::Interval(PERIOD.into()), TimerSetTimeFlags::empty())?;
        let end = limit.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        Ok(Clock { _timer: timer, end })
    }

    /// Whether a period has ended since the last call.
    pub fn has_ticked(&self) -> bool {
        TICKED.swap(false, Ordering::Relaxed)
    }

    /// Whether the limit has passed.
    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}
