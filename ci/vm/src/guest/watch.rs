//! Judges a boot by the guest's output. It does no I/O itself.

use super::channel::Channel;
use super::{Expect, Finished, Limits, Listener, Stream};
use crate::console::{Reader, TroubleKind};
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
/// After another complaint that ends the guest: the time for the rest of its report.
const AFTER_COMPLAINT: Duration = Duration::from_secs(2);
/// After a line that says so without proof. A kernel that has panicked mostly ends by itself.
const AFTER_DOUBT: Duration = Duration::from_secs(8);
/// A guest that still sends frames after this time has not panicked.
const LIFE: Duration = Duration::from_millis(300);
/// The time without output from which on the runner looks closely.
const QUIET: Duration = Duration::from_secs(5);
/// The number of lines of a report in a message.
const MOST_LINES: usize = 30;

/// The cure for a time limit.
const MORE_TIME: &str = "--time-limit SECONDS gives it more";

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
    reader: Reader,
    /// The phase of each complaint of the kernel.
    phases: Vec<Phase>,
    /// When a line said that the kernel panics, and the deadline until then.
    doubt: Option<(Instant, Instant)>,
    /// Whether the kernel has started init.
    has_init: bool,
    complaint: Option<(Phase, String)>,
    last_line: String,
    /// The time of the last output.
    spoke: Instant,
    /// When the runner began to look closely, and how long the guest had waited for a processor by
    /// then.
    quiet: Option<(Instant, Duration)>,
    is_blocked: bool,
    /// The guest's processor time at the last look.
    processor: Duration,
    /// The same at the last output.
    heard: Duration,
    /// Whether the guest has exceeded [`Limits::silent`].
    pub is_silent: bool,
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
            reader: Reader::new(expect.system),
            phases: Vec::new(),
            doubt: None,
            has_init: false,
            complaint: None,
            last_line: String::new(),
            spoke: now,
            quiet: None,
            is_blocked: false,
            processor: Duration::ZERO,
            heard: Duration::ZERO,
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

    /// Takes the processor time that the guest has used. `waited` returns how long it has waited for
    /// a processor.
    pub fn used(&mut self, processor: Duration, waited: impl FnOnce() -> Duration, now: Instant) {
        self.processor = processor;
        let silence = processor.saturating_sub(self.heard);
        if self.limits.silent.is_some_and(|most| silence > most) {
            self.is_silent = true;
            self.hurry(now);
        }
        let Some(most) = self.limits.idle else { return };
        if now.saturating_duration_since(self.spoke) > QUIET {
            let waited = waited();
            let (since, before) = *self.quiet.get_or_insert((now, waited));
            if (now - since).saturating_sub(waited.saturating_sub(before)) > most {
                self.is_blocked = true;
                self.hurry(now);
            }
        }
    }

    /// Extends the time limit by the time that the guest has waited for a processor. Returns whether
    /// there is time left.
    pub fn excuse(&mut self, waited: Duration, now: Instant) -> bool {
        let (start, limit) = match self.booted {
            None => (self.started, self.limits.boot),
            Some(booted) => (booted, self.limits.program),
        };
        let later = start + limit + waited;
        let has_trouble =
            self.complaint.is_some() || !self.phases.is_empty() || self.doubt.is_some();
        let is_over = has_trouble || self.exited.is_some() || self.is_silent || self.is_blocked;
        let is_excused = !is_over && later > now;
        if is_excused {
            self.deadline = later;
        }
        is_excused
    }

    /// Takes a line of the kernel log.
    pub fn console(&mut self, line: &str, now: Instant) {
        self.spoken(now);
        if self.done && self.waits_for_us() {
            return;
        }
        if !line.trim().is_empty() {
            self.last_line = line.trim().to_string();
        }
        self.has_init |= line.contains("Run /init as init process");
        let certain = self.reader.line(line);
        let count = self.reader.count();
        self.phases.resize(count, self.phase);
        match certain {
            // A hang may never end by itself.
            Some(TroubleKind::Oops | TroubleKind::Hung) => self.hurry(now + AFTER_FAULT),
            Some(kind) if kind.is_fatal() => self.hurry(now + AFTER_PANIC),
            Some(_) if self.limits.ends_at_complaint => self.hurry(now + AFTER_COMPLAINT),
            _ => {}
        }
        if self.reader.pending() == Some(TroubleKind::Panic) && self.doubt.is_none() {
            self.doubt = Some((now, self.deadline));
            self.hurry(now + AFTER_DOUBT);
        }
    }

    fn spoken(&mut self, now: Instant) {
        self.heard = self.processor;
        self.spoke = now;
        self.quiet = None;
    }

    /// Takes bytes from the channel.
    pub fn channel(&mut self, bytes: &[u8], listener: &mut dyn Listener, now: Instant) {
        self.spoken(now);
        if let Some((_, deadline)) = self.doubt.take_if(|(since, _)| now > *since + LIFE) {
            self.reader.lives();
            self.deadline = deadline;
        }
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
    pub fn finish(mut self, ending: Ending) -> Result<Finished, Unavailable> {
        let is_whole = match &ending {
            Ending::Gone(how) => self.done && how == "exit status 0",
            Ending::Stopped => self.done,
            // The runner ended a guest that was well.
            Ending::Unread => true,
        };
        // The kernel's complaints come first, because they explain everything else.
        let complaints = self.reader.finish(!is_whole);
        self.phases.resize(complaints.len(), self.phase);
        if let (Some((first, more)), Some(phase)) = (complaints.split_first(), self.phases.first())
        {
            // The console and the channel are two lines, so a report of init that was read after
            // the complaint may have been sent before it: a kernel that has panicked sends nothing.
            let has_panicked = complaints.iter().any(|one| one.kind == TroubleKind::Panic);
            let is_early = *phase == Phase::Boot && (has_panicked || self.has_init);
            let phase = if is_early { &self.phase } else { phase };
            let text = first.text.iter().filter(|_| first.text.len() > 1).take(MOST_LINES).cloned();
            let later = more.iter().take(3).map(|complaint| format!("later: {complaint}"));
            let cure =
                if first.is_of_memory() { "; --memory MIB gives the guest more" } else { "" };
            let failure = Unavailable::new(*phase, format!("{first}{cure}"));
            return Err(failure.detail(text.chain(later).collect()));
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
                (Ending::Stopped, _) if self.is_blocked => format!(
                    "the guest is blocked: for {} s it had a processor, but wrote nothing{last}",
                    self.limits.idle.unwrap_or_default().as_secs()
                ),
                (Ending::Stopped, Phase::Boot) => format!(
                    "the guest did not boot within {} s{last}; {MORE_TIME}",
                    self.limits.boot.as_secs_f32()
                ),
                (Ending::Gone(how), Phase::Boot) => {
                    format!("the guest did not boot: {how} before init reported{last}")
                }
                (Ending::Stopped, Phase::Program) => format!(
                    "the program hung: it did not end within {} s; since the last output {:.0} s ago \
                     it used {:.0} s of processor time{last}; {MORE_TIME}",
                    self.limits.program.as_secs_f32(),
                    self.deadline.saturating_duration_since(self.spoke).as_secs_f32(),
                    self.processor.saturating_sub(self.heard).as_secs_f32()
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
            return Err(Unavailable::new(self.phase, message));
        }
        let booted = self.booted.unwrap_or(self.started);
        Ok(Finished {
            release: self.release,
            exit: self.exited.map(|(_, exit)| exit).or(unread),
            boot: booted - self.started,
            program: self.exited.map_or(Duration::ZERO, |(at, _)| at - booted),
        })
    }
}

#[cfg(test)]
mod tests;
