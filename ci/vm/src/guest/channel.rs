//! The host's end of the protocol: parses bytes into frames and checks their order.

use kcov_vm_guest::protocol::{Frame, LINE_MAX, NotAFrame, escape};

/// Reads the frames of one boot.
#[derive(Clone, Debug)]
pub struct Channel {
    nonce: String,
    line: Vec<u8>,
    stage: Stage,
}

/// The frames that may come next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Boot,
    /// Also `end`, if there is no program.
    Start,
    Output,
    /// After its last output: the files that the program leaves.
    Files,
    End,
    Nothing,
}

impl Channel {
    /// Makes a channel that accepts only frames with this nonce.
    pub fn new(nonce: &str) -> Self {
        Self { nonce: nonce.to_string(), line: Vec::new(), stage: Stage::Boot }
    }

    /// Takes bytes and passes on each complete frame.
    ///
    /// Anything except this boot's frames in order is an error: something
    /// besides init wrote to the line, so nothing on it counts.
    pub fn feed(&mut self, bytes: &[u8], mut on: impl FnMut(Frame)) -> Result<(), String> {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                if self.line.len() > LINE_MAX {
                    return Err(format!("garbage on the channel: {}", quote(&self.line)));
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let frame = Frame::decode(&line, &self.nonce).map_err(|why| match why {
                NotAFrame::Malformed => format!("garbage on the channel: {}", quote(&line)),
                NotAFrame::WrongNonce => {
                    format!("a frame of another boot on the channel: {}", quote(&line))
                }
            })?;
            self.stage = self
                .stage
                .after(&frame)
                .ok_or_else(|| format!("a frame out of order on the channel: {}", quote(&line)))?;
            on(frame);
        }
        Ok(())
    }
}

impl Stage {
    fn after(self, frame: &Frame) -> Option<Self> {
        match (self, frame) {
            (Self::Boot, Frame::Boot { .. }) => Some(Self::Start),
            (Self::Start, Frame::Start) => Some(Self::Output),
            (Self::Output, Frame::Out(_) | Frame::Err(_)) => Some(Self::Output),
            (Self::Output | Self::Files, Frame::File { .. }) => Some(Self::Files),
            (Self::Files, Frame::Data(_)) => Some(Self::Files),
            (Self::Output | Self::Files, Frame::Exit(_)) => Some(Self::End),
            (Self::Boot | Self::Start | Self::Output | Self::Files, Frame::Fail(_)) => {
                Some(Self::End)
            }
            (Self::Start | Self::End, Frame::End) => Some(Self::Nothing),
            _ => None,
        }
    }
}

/// Quotes the beginning of a line for a message.
fn quote(line: &[u8]) -> String {
    let start = &line[..line.len().min(80)];
    format!("`{}{}`", escape(start), if start.len() < line.len() { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kcov_vm_guest::protocol::Exit;

    fn whole() -> Vec<Frame> {
        vec![
            Frame::Boot { release: "7.3.4".into(), machine: "x86_64".into() },
            Frame::Start,
            Frame::Out(b"hello".to_vec()),
            Frame::Err(b"\n".to_vec()),
            Frame::File { path: "f".into(), mode: 0o600 },
            Frame::Data(b"d".to_vec()),
            Frame::Exit(Exit::Status(0)),
            Frame::End,
        ]
    }

    fn feed(text: &str) -> (Vec<Frame>, Result<(), String>) {
        let mut frames = Vec::new();
        let result = Channel::new("n").feed(text.as_bytes(), |frame| frames.push(frame));
        (frames, result)
    }

    #[test]
    fn frames_come_whole_however_the_bytes_come() {
        let text: String = whole().iter().map(|frame| frame.encode("n")).collect();
        for size in [1, 7, text.len()] {
            let (mut channel, mut frames) = (Channel::new("n"), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                channel.feed(piece, |frame| frames.push(frame)).expect("all in order");
            }
            assert_eq!(frames, whole());
        }
    }

    #[test]
    fn other_lines_and_nonces_end_it() {
        let boot = whole()[0].encode("n");
        let (frames, result) = feed(&format!("{boot}hello\n"));
        assert_eq!(frames.len(), 1);
        assert_eq!(result, Err("garbage on the channel: `hello`".into()));
        let (_, result) = feed(&format!("{boot}{}", Frame::Start.encode("m")));
        assert!(result.is_err_and(|why| why.starts_with("a frame of another boot")));
        let (_, result) = feed(&"x".repeat(LINE_MAX + 1));
        assert!(result.is_err_and(|why| why.starts_with("garbage") && why.len() < 200));
    }

    #[test]
    fn frames_have_an_order() {
        let frames = whole();
        for skipped in 0..frames.len() - 1 {
            // Output and file data are optional.
            if matches!(frames[skipped], Frame::Out(_) | Frame::Err(_) | Frame::Data(_)) {
                continue;
            }
            let mut without = frames.clone();
            without.remove(skipped);
            let text: String = without.iter().map(|frame| frame.encode("n")).collect();
            assert!(feed(&text).1.is_err(), "without {:?}", frames[skipped]);
        }
        let twice: String = [&frames[0], &frames[0]].map(|frame| frame.encode("n")).concat();
        assert!(feed(&twice).1.is_err());
        // Init may fail at any time.
        let text = Frame::Fail("no".into()).encode("n") + &Frame::End.encode("n");
        assert_eq!(feed(&text), (vec![Frame::Fail("no".into()), Frame::End], Ok(())));
    }
}
