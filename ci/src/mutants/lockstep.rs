//! Lockstep alone: which alterations of the kernel random operations notice, without the suite.

use super::known::Known;
use super::record::{Entry, Lockstep, Outcome, Record};

/// The share of alterations that lockstep notices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Score {
    /// The alterations on which it ran.
    pub ran: usize,
    /// Those that it noticed.
    pub noticed: usize,
    /// Those that a check notices.
    pub killed: usize,
    /// Those that a check and lockstep notice.
    pub both: usize,
    /// The alterations on which it did not run.
    pub not_run: usize,
}

impl Score {
    /// Counts the alterations of the kernel that compile to other code and have no proof of
    /// equivalence.
    pub fn of<'a>(entries: impl Iterator<Item = &'a Entry>, known: &Known) -> Self {
        let mut score = Self::default();
        for Entry { id, outcome, lockstep, .. } in entries {
            let killed = match outcome {
                Outcome::SameCode | Outcome::Invalid { .. } => continue,
                Outcome::Undetected if known.subject.is_equivalent(id) => continue,
                outcome => matches!(outcome, Outcome::Killed { .. }),
            };
            let Some(lockstep) = lockstep else {
                score.not_run += 1;
                continue;
            };
            let noticed = *lockstep != Lockstep::Agreed;
            score.ran += 1;
            score.noticed += usize::from(noticed);
            score.killed += usize::from(killed);
            score.both += usize::from(killed && noticed);
        }
        score
    }

    /// The score in a table.
    pub fn cell(self) -> String {
        match self {
            Self { ran: 0, not_run: 0, .. } => "–".into(),
            Self { ran: 0, .. } => "not run".into(),
            Self { ran, noticed, .. } => format!("{noticed} of {ran}"),
        }
    }

    /// The score in words.
    fn words(self, what: &str) -> String {
        let Self { ran, noticed, killed, both, not_run } = self;
        let left = match not_run {
            0 => String::new(),
            _ => format!(" Not run: {not_run}."),
        };
        let percent = |part: usize, whole: usize| part as f64 * 100.0 / whole.max(1) as f64;
        format!(
            "It notices {noticed} of {ran} {what} ({:.1} %), and {both} of the {killed} that a check \
             kills ({:.1} %).{left}",
            percent(noticed, ran),
            percent(both, killed)
        )
    }
}

/// Describes the results of lockstep alone.
pub fn describe(record: &Record, known: &Known) -> String {
    let mutants = Score::of(record.mutants.iter(), known);
    let named = record.named.iter().filter(|entry| known.is_of_kernel(&entry.id));
    let named = Score::of(named, known);
    if mutants.ran + named.ran == 0 {
        return "Lockstep was not run.".into();
    }
    format!(
        "Lockstep alone runs {} operations of seed 1. {} {}",
        record.operations,
        mutants.words("mutants"),
        named.words("named alterations of the kernel")
    )
}
