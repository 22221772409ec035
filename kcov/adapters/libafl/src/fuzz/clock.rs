//! Reports progress and ends the run on time, even within a round, which may take minutes.

use super::Summary;
use kcov_vm_guest::fuzz::{Link, Progress};
use libafl::Error;
use std::time::{Duration, Instant};

/// Fast executions check the time only now and then.
const FAST: u64 = 64;

#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    end: Duration,
    printed: Duration,
    /// The number of executions between two looks.
    every: u64,
    /// The number at the next look.
    next: u64,
    /// As of the last report.
    pub(super) summary: Summary,
}

impl Clock {
    pub(super) fn new(is_fast: bool) -> Clock {
        let (start, end, printed) = (Instant::now(), Duration::MAX, Duration::ZERO);
        let every = if is_fast { FAST } else { 1 };
        Clock { start, end, printed, every, next: 0, summary: Summary::default() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn end_after(&mut self, time: Duration) {
        self.end = time;
    }

    /// Prints a line each second, and sends it to the host. Fails with [`Error::ShuttingDown`] when
    /// the time is over.
    pub(super) fn tick(&mut self, executions: u64, host: Option<&Link>) -> Result<(), Error> {
        if executions < self.next {
            return Ok(());
        }
        self.next = executions + self.every;
        let now = self.elapsed();
        if now >= self.end {
            return Err(Error::shutting_down());
        }
        if now >= self.printed + Duration::from_secs(1) {
            self.printed = now;
            self.summary.time = now;
            self.summary.executions = executions;
            println!("{}", self.summary);
            if let Some(host) = host {
                host.progress(&Progress { executions, signals: self.summary.pcs as u64 })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_ends_within_a_round() {
        let mut clock = Clock::new(true);
        clock.tick(FAST, None).unwrap();
        clock.end_after(Duration::ZERO);
        clock.tick(FAST + 1, None).unwrap();
        assert!(matches!(clock.tick(2 * FAST, None), Err(Error::ShuttingDown)));
    }
}
