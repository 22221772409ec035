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
    /// Begins a step.
    pub fn begin(name: impl Into<String>) -> Self {
        let name = name.into();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = BARS.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template("{msg} {spinner} {elapsed}");
            bar.set_style(style.expect("the template is valid"));
            bar.set_message(name.clone());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        if bar.is_none() {
            eprintln!("{name} ...");
        }
        Self { name, started: Instant::now(), bar }
    }

    /// Shows the step's progress.
    pub fn note(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {text}", self.name));
        }
    }

    /// Ends the step.
    pub fn done(self) {
        let seconds = self.started.elapsed().as_secs_f32();
        beside_bars(|| eprintln!("{}: {seconds:.1} s", self.name));
    }
}

impl Drop for Step {
    /// No step leaves a bar behind.
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
