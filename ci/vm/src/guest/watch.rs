//! Judges a boot by the guest's output. It does no I/O itself.

use super::channel::Channel;
use super::{Expect, Finished, Limits, Listener, Stream};
use crate::console::{Trouble, TroubleKind, classify};
use crate::error::{Phase, Unavailable};
use crate::system::System;
use kcov_vm_guest::protocol::{Exit, Frame};
use std::time::{Duration, Instant};

/// After a fault: the time for the guest to finish by itself.
const AFTER_FAULT: Duration = Duration::from_secs(5);
/// After a panic or a failed run: the time for the remaining messages.
const AFTER_PANIC: Duration = Duration::from_secs(1);
/// After the program's end: the time until the guest's last frame.
const AFTER_EXIT: Duration = Duration::from_secs(10);
/// After the last frame: the time until the runner ends the guest.
const AFTER_END: Duration = Duration::from_secs(2);

/// The signal that ends a program whose output nobody reads.
const SIGPIPE: i32 = 13;

/// How a guest ended.
#[derive(Clone, Debug)]
pub enum Ending {
    /// By itself; the text says how.
    Gone(String),
    /// The runner ended it at the deadline.
    Stopped,
    /// The runner ended it because nobody read the program's output any more.
    Unread,
}

/// The state of one boot.
#[derive(Debug)]
pub struct Watch<'a> {
    channel: Channel,
    limits: Limits,
    expect: &'a Expect,
    started: Instant,
    deadline: Instant,
    phase: Phase,
    done: bool,
    release: String,
    booted: Option<Instant>,
    exited: Option<(Instant, Exit)>,
    troubles: Vec<(Phase, Trouble)>,
    complaint: Option<(Phase, String)>,
    last_line: String,
    /// The guest's processor time at the last look.
    processor: Duration,
    /// The same at the last output.
    heard: Duration,
    /// The most between two outputs.
    silence: Duration,
    is_silent: bool,
}

impl<'a> Watch<'a> {
    /// Begins at the start of the guest.
    pub fn new(nonce: &str, limits: Limits, expect: &'a Expect, now: Instant) -> Self {
        Self {
            channel: Channel::new(nonce),
            limits,
            expect,
            started: now,
            deadline: now + limits.boot,
            phase: Phase::Boot,
            done: false,
            release: String::new(),
            booted: None,
            exited: None,
            troubles: Vec::new(),
            complaint: None,
            last_line: String::new(),
            processor: Duration::ZERO,
            heard: Duration::ZERO,
            silence: Duration::ZERO,
            is_silent: false,
        }
    }

    /// The time when the runner has to end the guest.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether init has reported.
    pub fn has_booted(&self) -> bool {
        self.booted.is_some()
    }

    /// Takes the processor time that the guest has used.
    pub fn used(&mut self, processor: Duration, now: Instant) {
        self.processor = processor;
        let silence = processor.saturating_sub(self.heard);
        self.silence = self.silence.max(silence);
        if self.limits.silent.is_some_and(|most| silence > most) {
            self.is_silent = true;
            self.hurry(now);
        }
    }

    /// Takes a line of the kernel log.
    pub fn console(&mut self, line: &str, now: Instant) {
        self.heard = self.processor;
        if self.done && self.waits_for_us() {
            return;
        }
        if !line.trim().is_empty() {
            self.last_line = line.trim().to_string();
        }
        let Some(trouble) = classify(line, self.expect.system) else { return };
        match trouble.kind {
            // A hang may never end by itself.
            TroubleKind::Oops | TroubleKind::Hung => self.hurry(now + AFTER_FAULT),
            kind if kind.is_fatal() => self.hurry(now + AFTER_PANIC),
            _ => {}
        }
        self.troubles.push((self.phase, trouble));
    }

    /// Takes bytes from the channel.
    pub fn channel(&mut self, bytes: &[u8], listener: &mut dyn Listener, now: Instant) {
        self.heard = self.processor;
        if self.complaint.is_some() {
            return;
        }
        let mut frames = Vec::new();
        let result = self.channel.feed(bytes, |frame| frames.push(frame));
        for frame in frames {
            self.frame(frame, listener, now);
        }
        if let Err(why) = result {
            self.complain(why, now);
        }
    }

    fn frame(&mut self, frame: Frame, listener: &mut dyn Listener, now: Instant) {
        match frame {
            Frame::Boot { release, machine } => {
                self.booted = Some(now);
                if let Some(why) = self.expect.contradicted_by(&release, &machine) {
                    self.complain(why, now);
                }
                listener.booted(&release);
                self.release = release;
                self.phase = Phase::Program;
                if self.complaint.is_none() {
                    self.deadline = now + self.limits.program;
                }
            }
            Frame::Start => {}
            Frame::Out(bytes) => listener.output(Stream::Out, &bytes),
            Frame::Err(bytes) => listener.output(Stream::Err, &bytes),
            Frame::File { path, mode } => listener.file(&path, mode),
            Frame::Data(bytes) => listener.data(&bytes),
            Frame::Exit(exit) => {
                self.exited = Some((now, exit));
                self.phase = Phase::End;
                self.deadline = now + AFTER_EXIT;
            }
            Frame::Fail(reason) => self.complain(format!("the guest's init: {reason}"), now),
            Frame::End => {
                self.done = true;
                self.phase = Phase::End;
                self.deadline = if self.waits_for_us() { now } else { now + AFTER_END };
            }
        }
    }

    /// Whether the guest waits for the runner to end it. Then nothing after its
    /// last frame concerns the run.
    fn waits_for_us(&self) -> bool {
        self.expect.system == System::NetBsd
    }

    fn complain(&mut self, why: String, now: Instant) {
        self.complaint.get_or_insert((self.phase, why));
        self.hurry(now + AFTER_PANIC);
    }

    fn hurry(&mut self, deadline: Instant) {
        self.deadline = self.deadline.min(deadline);
    }

    /// Judges the run after all output has arrived.
    pub fn finish(self, ending: Ending) -> Result<Finished, Unavailable> {
        // The kernel's complaints come first, because they explain everything
        // else.
        if let Some(((phase, first), more)) = self.troubles.split_first() {
            // A kernel that has panicked sends nothing, so a report of init that was read after the
            // panic had been sent before it, over the other line.
            let mut troubles = self.troubles.iter();
            let has_panicked = troubles.any(|(_, trouble)| trouble.kind == TroubleKind::Panic);
            let is_early = *phase == Phase::Boot && has_panicked;
            let phase = if is_early { &self.phase } else { phase };
            let later = more.iter().take(3).map(|(_, trouble)| format!("later: {trouble}"));
            let failure = Unavailable::new(*phase, first.to_string());
            return Err(failure.detail(later.collect()));
        }
        if let Some((phase, why)) = self.complaint {
            return Err(Unavailable::new(phase, why));
        }
        let unread = matches!(ending, Ending::Unread).then_some(Exit::Signal(SIGPIPE));
        if !self.done && unread.is_none() {
            let last = match self.last_line.as_str() {
                "" => "; nothing is on its console".to_string(),
                line => format!("; last on its console: `{line}`"),
            };
            let message = match (ending, self.phase) {
                (Ending::Stopped, _) if self.is_silent => format!(
                    "the guest hung: it used {} s of processor time without output{last}",
                    self.limits.silent.unwrap_or_default().as_secs()
                ),
                (Ending::Stopped, Phase::Boot) => format!(
                    "the guest did not boot within {} s{last}",
                    self.limits.boot.as_secs_f32()
                ),
                (Ending::Gone(how), Phase::Boot) => {
                    format!("the guest did not boot: {how} before init reported{last}")
                }
                (Ending::Stopped, Phase::Program) => format!(
                    "the program hung: it did not end within {} s",
                    self.limits.program.as_secs_f32()
                ),
                (Ending::Gone(how), Phase::Program) => {
                    format!("the guest went down before the program ended: {how}{last}")
                }
                (Ending::Stopped | Ending::Unread, _) => {
                    "the guest hung after the program's end".into()
                }
                (Ending::Gone(how), _) => {
                    format!("the guest went down before its last frame: {how}{last}")
                }
            };
            let advice = (self.phase == Phase::Boot && self.expect.system == System::NetBsd)
                .then(|| "see `A kernel that does not boot` in docs/src/netbsd-lane.md".into());
            let failure = Unavailable::new(self.phase, message);
            return Err(failure.detail(advice.into_iter().collect()));
        }
        let booted = self.booted.unwrap_or(self.started);
        Ok(Finished {
            release: self.release,
            exit: self.exited.map(|(_, exit)| exit).or(unread),
            boot: booted - self.started,
            program: self.exited.map_or(Duration::ZERO, |(at, _)| at - booted),
            silence: self.silence,
        })
    }
}

#[cfg(test)]
mod tests;
