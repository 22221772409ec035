//! The lines that a fuzzer prints for the host: JSON behind a word.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The beginning of each line.
const BEGIN: &str = "@kcov-vm-fuzz ";

/// The state of a fuzzer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// How often it ran an input.
    pub executions: u64,
    /// The number of program counters, edges or the like that it has reached.
    pub signals: u64,
}

/// A line for the host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Line {
    /// An input for the corpus.
    Found(Vec<u8>),
    /// A smaller version of an input that was found, and the [`name`](super::name) of that input.
    Replaced(u64, Vec<u8>),
    /// An input that the fuzzer finds a crash.
    Crashed(Vec<u8>),
    /// The state of the fuzzer.
    Progress(Progress),
    /// Program counters that the fuzzer has reached, as the kernel records them.
    Reached(Vec<u64>),
    /// A smaller version of the input that a replay runs.
    Smaller(Vec<u8>),
    /// The input that a replay runs, for people.
    Text(String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        write!(f, "{BEGIN}{json}")
    }
}

impl Line {
    /// Parses a line without its line feed. Returns `None` if it has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Line> {
        serde_json::from_str(text.strip_prefix(BEGIN)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive() {
        for line in [
            Line::Found((0..=255).collect()),
            Line::Replaced(u64::MAX, Vec::new()),
            Line::Reached(vec![0x6012_f015, u64::MAX]),
            Line::Text("r0 = open()\nclose(r0)\n".into()),
        ] {
            let text = line.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
            assert_eq!(Line::parse(&text), Some(line));
            assert_eq!(Line::parse(&text[..text.len() - 1]), None);
        }
        assert_eq!(Line::parse("{\"Found\":[]}"), None);
    }
}
