//! The lines that a fuzzer prints for the host.

use std::fmt;

/// The beginning of each line.
const BEGIN: &str = "@kcov-vm-fuzz ";

/// The state of a fuzzer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How often it ran an input.
    pub executions: u64,
    /// The number of program counters, edges or the like that it has reached.
    pub signals: u64,
}

/// A line for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        f.write_str(BEGIN)?;
        let mut input = |kind, input: &[u8]| {
            f.write_str(kind)?;
            input.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        match self {
            Line::Found(found) => input("found ", found),
            Line::Replaced(name, smaller) => input(&format!("replaced {name:x} "), smaller),
            Line::Crashed(crashed) => input("crashed ", crashed),
            Line::Smaller(smaller) => input("smaller ", smaller),
            Line::Text(text) => input("text ", text.as_bytes()),
            Line::Progress(Progress { executions, signals }) => {
                write!(f, "progress {executions} {signals}")
            }
            Line::Reached(pcs) => {
                f.write_str("reached")?;
                pcs.iter().try_for_each(|pc| write!(f, " {pc:x}"))
            }
        }
    }
}

impl Line {
    /// Parses a line without its line feed. Returns `None` if it has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Line> {
        let (kind, value) = text.strip_prefix(BEGIN)?.split_once(' ')?;
        match kind {
            "found" => bytes(value).map(Line::Found),
            "replaced" => {
                let (name, smaller) = value.split_once(' ')?;
                Some(Line::Replaced(u64::from_str_radix(name, 16).ok()?, bytes(smaller)?))
            }
            "crashed" => bytes(value).map(Line::Crashed),
            "smaller" => bytes(value).map(Line::Smaller),
            "text" => bytes(value).and_then(|text| String::from_utf8(text).ok()).map(Line::Text),
            "progress" => {
                let (executions, signals) = value.split_once(' ')?;
                let (executions, signals) = (executions.parse().ok()?, signals.parse().ok()?);
                Some(Line::Progress(Progress { executions, signals }))
            }
            "reached" => {
                let pcs = value.split(' ').map(|word| u64::from_str_radix(word, 16).ok());
                pcs.collect::<Option<Vec<_>>>().map(Line::Reached)
            }
            _ => None,
        }
    }
}

/// Parses hexadecimal digits.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|digit| (digit as char).to_digit(16));
    let digits = digits.map(|digit| digit.map(|digit| digit as u8)).collect::<Option<Vec<_>>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive() {
        let progress = Progress { executions: 9, signals: u64::MAX };
        for line in [
            Line::Found(Vec::new()),
            Line::Found((0..=255).collect()),
            Line::Replaced(u64::MAX, vec![7]),
            Line::Replaced(1, Vec::new()),
            Line::Crashed(vec![7]),
            Line::Progress(progress),
            Line::Reached(vec![0x6012_f015, u64::MAX]),
            Line::Smaller(vec![7]),
            Line::Text("r0 = open()\nclose(r0)\n".into()),
        ] {
            assert_eq!(Line::parse(&line.to_string()), Some(line));
        }
    }

    #[test]
    fn other_lines_are_not_for_the_host() {
        for text in [
            "",
            "found 00",
            "@kcov-vm-fuzz",
            "@kcov-vm-fuzz found",
            "@kcov-vm-fuzz found 0",
            "@kcov-vm-fuzz found 0g",
            "@kcov-vm-fuzz progress 1",
            "@kcov-vm-fuzz progress 1 2 3",
            "@kcov-vm-fuzz replaced 00",
            "@kcov-vm-fuzz lost 00",
            "@kcov-vm-fuzz text ff",
        ] {
            assert_eq!(Line::parse(text), None, "{text}");
        }
    }
}
