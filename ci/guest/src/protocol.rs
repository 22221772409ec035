//! The frames that a guest sends to the host, one per line:
//!
//! ```text
//! @kcov-vm <nonce> <kind> <payload>
//! ```
//!
//! Payloads are [escaped](escape), so a frame is always one line of
//! printable ASCII, whatever the program wrote. Each boot has a new nonce,
//! which the program does not know.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The beginning of every frame.
pub const MARK: &str = "@kcov-vm";

/// The maximum number of bytes of a program's output in one frame.
pub const CHUNK: usize = 1024;

/// The maximum length of a frame: a chunk of escaped bytes, and room for the
/// rest.
pub const LINE_MAX: usize = 4 * CHUNK + 256;

/// One message from the guest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    /// Init runs. The fields describe its kernel, from `uname`.
    Boot {
        /// The kernel's release string.
        release: String,
        /// The machine's name, such as `x86_64`.
        machine: String,
    },
    /// The program is about to be started.
    Start,
    /// The program wrote this to standard output.
    Out(Vec<u8>),
    /// The program wrote this to standard error.
    Err(Vec<u8>),
    /// The program left a requested file; its bytes follow.
    File {
        /// The path in the directory that is sent back.
        path: OsString,
        /// Its permissions.
        mode: u32,
    },
    /// The next bytes of the last file.
    Data(Vec<u8>),
    /// The program ended and everything it wrote has been sent.
    Exit(Exit),
    /// Init failed for this reason.
    Fail(String),
    /// Nothing follows; the guest goes down.
    End,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// It exited with this status.
    Status(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(number) => write!(f, "status={number}"),
            Self::Signal(number) => write!(f, "signal={number}"),
        }
    }
}

/// The reason why a line is not a frame of this boot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotAFrame {
    /// It does not have a frame's format.
    Malformed,
    /// It is a frame with another boot's nonce.
    WrongNonce,
}

impl Frame {
    /// Writes the frame as a line, with its line feed.
    pub fn encode(&self, nonce: &str) -> String {
        let (kind, payload) = match self {
            Self::Boot { release, machine } => {
                let release = escape(release.as_bytes());
                ("boot", format!("release={release} machine={}", escape(machine.as_bytes())))
            }
            Self::Start => ("start", String::new()),
            Self::Out(bytes) => ("out", escape(bytes)),
            Self::Err(bytes) => ("err", escape(bytes)),
            Self::File { path, mode } => {
                ("file", format!("mode={mode:o} path={}", escape(path.as_bytes())))
            }
            Self::Data(bytes) => ("data", escape(bytes)),
            Self::Exit(exit) => ("exit", exit.to_string()),
            Self::Fail(reason) => ("fail", escape(reason.as_bytes())),
            Self::End => ("end", String::new()),
        };
        format!("{MARK} {nonce} {kind} {payload}\n")
    }

    /// Parses a line, without its line feed, as a frame of the boot with this
    /// `nonce`.
    pub fn decode(line: &[u8], nonce: &str) -> Result<Self, NotAFrame> {
        let text = std::str::from_utf8(line).map_err(|_| NotAFrame::Malformed)?;
        let mut words = text.splitn(4, ' ');
        let mut next = || words.next().ok_or(NotAFrame::Malformed);
        if next()? != MARK {
            return Err(NotAFrame::Malformed);
        }
        if next()? != nonce {
            return Err(NotAFrame::WrongNonce);
        }
        Self::from_parts(next()?, next()?).ok_or(NotAFrame::Malformed)
    }

    fn from_parts(kind: &str, payload: &str) -> Option<Self> {
        Some(match kind {
            "boot" => {
                let (release, machine) = payload.rsplit_once(" machine=")?;
                Self::Boot {
                    release: text(release.strip_prefix("release=")?)?,
                    machine: text(machine)?,
                }
            }
            "start" if payload.is_empty() => Self::Start,
            "out" => Self::Out(unescape(payload)?),
            "err" => Self::Err(unescape(payload)?),
            "file" => {
                let (mode, path) = payload.split_once(' ')?;
                Self::File {
                    path: OsString::from_vec(unescape(path.strip_prefix("path=")?)?),
                    mode: u32::from_str_radix(mode.strip_prefix("mode=")?, 8).ok()?,
                }
            }
            "data" => Self::Data(unescape(payload)?),
            "exit" => Self::Exit(match payload.split_once('=')? {
                ("status", number) => Exit::Status(number.parse().ok()?),
                ("signal", number) => Exit::Signal(number.parse().ok()?),
                _ => return None,
            }),
            "fail" => Self::Fail(text(payload)?),
            "end" if payload.is_empty() => Self::End,
            _ => return None,
        })
    }
}

fn text(payload: &str) -> Option<String> {
    String::from_utf8(unescape(payload)?).ok()
}

/// Returns `bytes` with each backslash and non-printable byte as `\xNN`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\x5c"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text
}

/// Reverses [`escape`]. Returns `None` for other text.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match first {
            b'\\' => {
                let (code, tail) = tail.strip_prefix(b"x")?.split_at_checked(2)?;
                let high = char::from(code[0]).to_digit(16)?;
                let low = char::from(code[1]).to_digit(16)?;
                bytes.push((high * 16 + low) as u8);
                tail
            }
            b' '..=b'~' => {
                bytes.push(first);
                tail
            }
            _ => return None,
        };
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(frame: Frame) {
        let line = frame.encode("n0nce");
        let line = line.strip_suffix('\n').expect("a frame ends its line");
        assert!(!line.contains('\n'));
        assert!(line.len() <= LINE_MAX);
        assert_eq!(Frame::decode(line.as_bytes(), "n0nce"), Ok(frame));
    }

    #[test]
    fn frames_survive_the_line() {
        round_trip(Frame::Boot { release: "7.3.4 odd".into(), machine: "x86_64".into() });
        round_trip(Frame::Start);
        round_trip(Frame::File { path: "a b/c\n".into(), mode: 0o640 });
        round_trip(Frame::Data(vec![0, b' ', 0xff]));
        round_trip(Frame::Exit(Exit::Status(1)));
        round_trip(Frame::Exit(Exit::Signal(9)));
        round_trip(Frame::Fail("mount /proc: \n no".into()));
        round_trip(Frame::End);
    }

    #[test]
    fn any_bytes_survive_the_line() {
        round_trip(Frame::Out((0..=255).collect()));
        round_trip(Frame::Err(b"@kcov-vm n0nce end \n".to_vec()));
        round_trip(Frame::Out(Vec::new()));
        round_trip(Frame::Out(vec![0; CHUNK]));
    }

    #[test]
    fn another_boots_frame_is_told_apart() {
        let line = Frame::End.encode("old").replace('\n', "");
        assert_eq!(Frame::decode(line.as_bytes(), "new"), Err(NotAFrame::WrongNonce));
    }

    #[test]
    fn other_lines_are_malformed() {
        for line in [
            "",
            "@kcov-vm",
            "@kcov-vm n",
            "@kcov-vm n end",
            "@kcov-vm n end x",
            "@kcov-vm n nonsense ",
            "@kcov-vm n exit status=",
            "@kcov-vm n exit 1",
            "@kcov-vm n boot release=1",
            "@kcov-vm n file mode=9 path=a",
            "@kcov-vm n file mode=644",
            "@kcov-vm n out \\q",
            " @kcov-vm n end ",
            "Kernel panic",
        ] {
            assert_eq!(Frame::decode(line.as_bytes(), "n"), Err(NotAFrame::Malformed), "{line}");
        }
    }

    #[test]
    fn what_escape_cannot_have_written_is_refused() {
        for text in ["\\", "\\x", "\\x1", "\\n", "\\xg0", "\\x+1", "tab\t", "é"] {
            assert_eq!(unescape(text), None, "{text:?}");
        }
    }
}
