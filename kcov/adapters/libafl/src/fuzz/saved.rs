//! Inputs on the host.

use crate::{Calls, Program, failed};
use libafl::Error;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use std::borrow::Cow;

/// An input as the bytes of its file.
pub(super) trait Saved: Sized {
    fn to_bytes(&self) -> Result<Cow<'_, [u8]>, Error>;
    /// Smaller versions of it, the smallest first. None if any bytes can go.
    fn smaller(&self) -> Vec<Self> {
        Vec::new()
    }
}

impl Saved for BytesInput {
    fn to_bytes(&self) -> Result<Cow<'_, [u8]>, Error> {
        Ok(Cow::Borrowed(self.mutator_bytes()))
    }
}

impl Saved for Program {
    fn to_bytes(&self) -> Result<Cow<'_, [u8]>, Error> {
        postcard::to_allocvec(self).map(Cow::Owned).map_err(failed)
    }

    fn smaller(&self) -> Vec<Self> {
        Program::smaller(self)
    }
}

/// A program from its file, or from text.
pub(super) fn program(calls: &Calls, bytes: &[u8]) -> Result<Program, Error> {
    // In the saved form, the number of a call's arguments is no printable byte.
    match str::from_utf8(bytes) {
        Ok(text) if !text.contains(|c: char| c.is_control() && !"\t\n\r".contains(c)) => {
            calls.parse(text)
        }
        _ => postcard::from_bytes(bytes).map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Argument, Call, Param};

    #[test]
    fn inputs_survive_as_bytes() {
        let input = BytesInput::new(vec![0, 1, 2]);
        assert_eq!(input.to_bytes().unwrap(), &[0, 1, 2][..]);
        let calls = Calls::new().call("seek", &[Param::Number], |_| 0);
        let read = |bytes: &[u8]| super::program(&calls, bytes);
        let empty = Program::default();
        assert_eq!(read(&empty.to_bytes().unwrap()).unwrap(), empty);
        let seek = read(b"# forward\r\nseek(10)\n").unwrap();
        assert_eq!(calls.text(&seek), "seek(0xa)\n");
        assert_eq!(read(&seek.to_bytes().unwrap()).unwrap(), seek);
        assert!(read(&[0xff; 3]).is_err());
        let error = read(b"seek(1)\nseek(x)\n").unwrap_err().to_string();
        assert!(error.contains("line 2: `x` does not fit the parameter Number"), "{error}");
    }

    #[test]
    fn smaller_programs_lack_calls_then_bytes_and_numbers() {
        let opens = Call { number: 0, arguments: Vec::new() };
        let takes = |result, bytes: &[u8], number| {
            let bytes = Argument::Bytes(bytes.to_vec());
            let arguments = vec![Argument::Result(result), bytes, Argument::Number(number)];
            Call { number: 1, arguments }
        };
        let program = |calls: &[Call]| Program { calls: calls.to_vec() };
        let smaller = [
            program(&[takes(None, b"abcd", 5)]),
            program(std::slice::from_ref(&opens)),
            program(&[opens.clone(), takes(Some(0), b"ab", 5)]),
            program(&[opens.clone(), takes(Some(0), b"abc", 5)]),
            program(&[opens.clone(), takes(Some(0), b"abcd", 0)]),
        ];
        assert_eq!(program(&[opens, takes(Some(0), b"abcd", 5)]).smaller(), smaller);
        assert!(Program::default().smaller().is_empty());
        assert!(BytesInput::new(vec![7]).smaller().is_empty());
    }
}
