//! The host of a guest, if the fuzzer runs under `kcov-vm fuzz`.

use super::Summary;
use crate::{Program, failed};
use kcov_vm_guest::fuzz::{self, Link, Progress};
use libafl::Error;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use std::borrow::Cow;
use std::io;
use std::time::Duration;

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

/// The host, or nobody.
#[derive(Debug)]
pub(super) struct Host(Option<Link>);

impl Host {
    pub(super) fn new() -> Result<Host, Error> {
        Link::open().map(Host).map_err(failed)
    }

    /// The seed and the time limit, if the host sets them.
    pub(super) fn limits(&self) -> Option<(u64, Duration)> {
        self.0.as_ref().map(|link| (link.seed(), link.time()))
    }

    /// Keeps an input for the host in case that the kernel dies of it, and the name of the input
    /// that it was made from.
    pub(super) fn run(&mut self, input: &impl Saved, parent: Option<u64>) -> Result<(), Error> {
        let Host(Some(link)) = self else { return Ok(()) };
        link.run(&input.to_bytes()?, parent);
        Ok(())
    }

    /// The host's name for an input.
    pub(super) fn name(&self, input: &impl Saved) -> Result<u64, Error> {
        Ok(fuzz::name(&input.to_bytes()?))
    }

    /// The files of the host's corpus that are such inputs.
    pub(super) fn corpus<I: Saved>(&self) -> Result<Vec<I>, Error> {
        self.inputs(Link::corpus)
    }

    /// The inputs that only other guests mutate.
    pub(super) fn resting<I: Saved>(&self) -> Result<Vec<I>, Error> {
        self.inputs(Link::resting)
    }

    fn inputs<I: Saved>(
        &self,
        of: impl FnOnce(&Link) -> io::Result<Vec<Vec<u8>>>,
    ) -> Result<Vec<I>, Error> {
        let inputs = self.0.as_ref().map_or(Ok(Vec::new()), of)?;
        Ok(inputs.iter().filter_map(|bytes| I::from_bytes(bytes)).collect())
    }

    /// The inputs of a replay.
    pub(super) fn replay<I: Saved>(&self) -> Result<Option<Vec<I>>, Error> {
        let inputs = self.0.as_ref().map_or(Ok(None), Link::replay)?;
        Ok(inputs.map(|all| all.iter().filter_map(|bytes| I::from_bytes(bytes)).collect()))
    }

    /// Tells the host about the only input of a replay.
    pub(super) fn about<I: Saved>(&self, input: &I, text: Option<String>) -> Result<(), Error> {
        let Host(Some(link)) = self else { return Ok(()) };
        let smaller = input.smaller();
        let smaller = smaller.iter().map(|input| input.to_bytes().map(Cow::into_owned));
        Ok(link.about(text, smaller.collect::<Result<Vec<_>, _>>()?)?)
    }

    /// Sends an input of the corpus to the host.
    pub(super) fn found(&self, input: &impl Saved) -> Result<(), Error> {
        let Host(Some(link)) = self else { return Ok(()) };
        Ok(link.found(&input.to_bytes()?)?)
    }

    /// Replaces an input in the host's corpus with a smaller one. Returns the new input's name.
    pub(super) fn replaced(&self, name: u64, smaller: &impl Saved) -> Result<u64, Error> {
        let new = self.name(smaller)?;
        if let Host(Some(link)) = self
            && new != name
        {
            link.replaced(name, &smaller.to_bytes()?)?;
        }
        Ok(new)
    }

    /// Sends an input that crashed or hung the harness to the host.
    pub(super) fn crashed(&self, input: &impl Saved) -> Result<(), Error> {
        let Host(Some(link)) = self else { return Ok(()) };
        Ok(link.crashed(&input.to_bytes()?)?)
    }

    /// Sends program counters to the host.
    pub(super) fn reached(&self, pcs: &[u64]) -> Result<(), Error> {
        let Host(Some(link)) = self else { return Ok(()) };
        Ok(link.reached(pcs)?)
    }

    pub(super) fn progress(&self, summary: &Summary) -> Result<(), Error> {
        let Host(Some(link)) = self else { return Ok(()) };
        let Summary { executions, inputs, signals, .. } = *summary;
        let (corpus, signals) = (inputs as u64, signals as u64);
        Ok(link.progress(&Progress { executions, corpus, signals })?)
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

    #[test]
    fn without_a_host_nothing_happens() {
        let mut host = Host(None);
        let input = BytesInput::new(vec![7]);
        host.run(&input, None).unwrap();
        host.found(&input).unwrap();
        assert_eq!(host.limits(), None);
        assert!(host.corpus::<BytesInput>().unwrap().is_empty());
        assert!(host.resting::<BytesInput>().unwrap().is_empty());
        assert!(host.replay::<BytesInput>().unwrap().is_none());
    }
}
