//! Inputs on the host.

use crate::{Program, failed};
use libafl::Error;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use std::borrow::Cow;

/// An input as the bytes of its file.
pub(super) trait Saved: Sized {
    fn to_bytes(&self) -> Result<Cow<'_, [u8]>, Error>;
    /// Returns `None` if the bytes are no such input.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
    /// Smaller versions of it, the smallest first. None if any bytes can go.
    fn smaller(&self) -> Vec<Self> {
        Vec::new()
    }
}

impl Saved for BytesInput {
    fn to_bytes(&self) -> Result<Cow<'_, [u8]>, Error> {
        Ok(Cow::Borrowed(self.mutator_bytes()))
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(BytesInput::new(bytes.to_vec()))
    }
}

impl Saved for Program {
    fn to_bytes(&self) -> Result<Cow<'_, [u8]>, Error> {
        postcard::to_allocvec(self).map(Cow::Owned).map_err(failed)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    fn smaller(&self) -> Vec<Self> {
        Program::smaller(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Argument, Call};

    #[test]
    fn inputs_survive_as_bytes() {
        let input = BytesInput::new(vec![0, 1, 2]);
        assert_eq!(BytesInput::from_bytes(&input.to_bytes().unwrap()), Some(input));
        let program = Program::default();
        assert_eq!(Program::from_bytes(&program.to_bytes().unwrap()), Some(program));
        assert_eq!(Program::from_bytes(&[0xff; 3]), None);
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
