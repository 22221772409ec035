//! Shows the steps that take time.

use std::time::Instant;

/// One step, which prints a line at its beginning and one at its end.
#[derive(Debug)]
pub struct Step {
    name: String,
    started: Instant,
}

impl Step {
    /// Begins a step.
    pub fn begin(name: impl Into<String>) -> Self {
        let name = name.into();
        eprintln!("{name} ...");
        Self { name, started: Instant::now() }
    }

    /// Ends the step.
    pub fn done(self) {
        eprintln!("{}: {:.1} s", self.name, self.started.elapsed().as_secs_f32());
    }
}
