//! Shows the steps that take time.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The terminal's bars, for all active steps.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// One step: a bar on a terminal, two lines elsewhere.
#[derive(Debug)]
pub struct Step {
    name: String,
    started: Instant,
    bar: Option<ProgressBar>,
}

/// Prints while the bars are hidden.
pub fn beside_bars<T>(print: impl FnOnce() -> T) -> T {
    BARS.suspend(print)
}

impl Step {
    /// Begins a step. `total` is in the unit of [`advance`](Self::advance).
    /// Without it the bar only spins.
    pub fn begin(name: impl Into<String>, total: Option<u64>) -> Self {
        let name = name.into();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            let bar = BARS.add(bar);
            let template = match total {
                Some(_) => "{msg} [{bar:30}] {percent:>3}% {elapsed}",
                None => "{msg} {spinner} {elapsed}",
            };
            let style = ProgressStyle::with_template(template).expect("the template is valid");
            bar.set_style(style.progress_chars("=> "));
            bar.set_message(name.clone());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        if bar.is_none() {
            eprintln!("{name} ...");
        }
        Self { name, started: Instant::now(), bar }
    }

    /// Counts up, but not to the end, because the total may be a guess.
    pub fn advance(&self, by: u64) {
        if let Some(bar) = &self.bar {
            let most = bar.length().unwrap_or(u64::MAX).saturating_sub(1);
            bar.set_position((bar.position() + by).min(most));
        }
    }

    /// Shows the step's progress.
    pub fn note(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {text}", self.name));
        }
    }

    /// Ends the step.
    pub fn done(mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let seconds = self.started.elapsed().as_secs_f32();
        beside_bars(|| eprintln!("{}: {seconds:.1} s", self.name));
    }
}

impl Drop for Step {
    /// A failed step leaves no bar behind.
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
