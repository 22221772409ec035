//! The calls of which programs consist.

use super::{Argument, Call, Program};
use std::cell::RefCell;
use std::fmt;
use std::slice;

/// Something that some calls return and others take, such as a kind of descriptor.
///
/// ```
/// # use kcov_libafl::Resource;
/// static SOCKET: Resource = Resource::new("socket", |fd| {
///     // SAFETY: only programs use the descriptor.
///     unsafe { libc::close(fd as i32) };
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    name: &'static str,
    release: fn(i64),
}

impl Resource {
    /// Describes a resource. Each result of a call that returns it is released when the program
    /// has ended.
    #[must_use]
    pub const fn new(name: &'static str, release: fn(i64)) -> Resource {
        Resource { name, release }
    }

    fn is(&self, other: &Resource) -> bool {
        self.name == other.name
    }
}

/// What a call takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Param {
    /// Any number.
    Number,
    /// Mostly one of these numbers. Mutation, the kernel's comparisons and files can give it any other
    /// number, too.
    OneOf(&'static [u64]),
    /// Mostly some of these bits, and any other number in the same cases.
    Flags(&'static [u64]),
    /// At most this many bytes. The call gets the address of memory for this many bytes and at least
    /// one more, aligned to 8. The program's bytes come first; the rest is zero. The call may write to
    /// this memory.
    Bytes(usize),
    /// The number of bytes of the last [`Bytes`](Param::Bytes) before it.
    Length,
    /// The result of an earlier call that returns the resource, or -1.
    Result(&'static Resource),
    /// The result of an earlier call that returns one of these resources, or -1.
    AnyResult(&'static [&'static Resource]),
}

impl Param {
    /// The resources whose results fit.
    pub(crate) fn resources(&self) -> &[&'static Resource] {
        match self {
            Param::Result(resource) => slice::from_ref(resource),
            Param::AnyResult(resources) => resources,
            _ => &[],
        }
    }
}

/// The calls that programs may make, each described by a line.
///
/// ```
/// use kcov_libafl::{Calls, Param::*, Resource};
///
/// static FILE: Resource = Resource::new("file", |fd| {
///     // SAFETY: only programs use the descriptor.
///     unsafe { libc::close(fd as i32) };
/// });
/// let calls = Calls::new()
///     // SAFETY: the calls access no memory of the program.
///     .returning(&FILE, "dup", &[Result(&FILE)], |a| unsafe { libc::dup(a[0] as i32) }.into())
///     .call("fsync", &[Result(&FILE)], |a| unsafe { libc::fsync(a[0] as i32) }.into());
/// ```
#[derive(Default)]
pub struct Calls {
    pub(crate) descriptions: Vec<Description>,
    memory: RefCell<Memory>,
}

/// A call of [`Calls`].
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) params: Vec<Param>,
    pub(crate) returns: Option<&'static Resource>,
    run: Run,
}

type Run = Box<dyn Fn(&[u64]) -> i64>;

impl Description {
    pub(crate) fn returns(&self, resources: &[&Resource]) -> bool {
        self.returns.is_some_and(|returns| resources.iter().any(|one| returns.is(one)))
    }

    /// Whether the call can be made with these arguments. Programs come from files too.
    fn takes(&self, arguments: &[Argument]) -> bool {
        self.params.len() == arguments.len()
            && self.params.iter().zip(arguments).all(|pair| match pair {
                (Param::Bytes(most), Argument::Bytes(content)) => content.len() <= *most,
                (Param::Number | Param::OneOf(_) | Param::Flags(_), Argument::Number(_))
                | (Param::Length, Argument::Length)
                | (Param::Result(_) | Param::AnyResult(_), Argument::Result(_)) => true,
                _ => false,
            })
    }

    /// The words of memory that its arguments need.
    fn words(&self) -> usize {
        self.params.iter().map(words).sum()
    }
}

/// Reused from program to program, so that running one allocates nothing.
#[derive(Debug, Default)]
struct Memory {
    bytes: Vec<u64>,
    arguments: Vec<u64>,
    results: Vec<i64>,
}

impl Calls {
    /// No calls yet.
    #[must_use]
    pub fn new() -> Calls {
        Calls::default()
    }

    /// Describes a call. `run` makes the call with one argument for each of `params`. It returns the
    /// call's result, which is negative if the call failed.
    ///
    /// `run` must be sound for all values of numeric arguments, because a program may come from a file.
    #[must_use]
    pub fn call(
        self,
        name: &'static str,
        params: &[Param],
        run: impl Fn(&[u64]) -> i64 + 'static,
    ) -> Calls {
        self.add(name, params, None, run)
    }

    /// Describes a call that returns a resource, unless its result is negative.
    ///
    /// A call with several results, such as pipe(2), returns a resource that has them all, and
    /// further "calls" take it and return one of them each:
    ///
    /// ```
    /// use kcov_libafl::{Calls, Param::*, Resource};
    ///
    /// static ENDS: Resource = Resource::new("ends", |ends| {
    ///     for fd in [ends as i32, (ends >> 32) as i32] {
    ///         // SAFETY: only programs use the descriptors.
    ///         unsafe { libc::close(fd) };
    ///     }
    /// });
    /// // `ENDS` closes them.
    /// static READ: Resource = Resource::new("read", |_| ());
    /// static WRITE: Resource = Resource::new("write", |_| ());
    /// let calls = Calls::new()
    ///     .returning(&ENDS, "pipe", &[], |_| {
    ///         let mut fds = [0; 2];
    ///         // SAFETY: the array has room for both.
    ///         let result = unsafe { libc::pipe(fds.as_mut_ptr()) };
    ///         if result < 0 { -1 } else { i64::from(fds[0]) | i64::from(fds[1]) << 32 }
    ///     })
    ///     .returning(&READ, "first", &[Result(&ENDS)], |a| (a[0] as i32).into())
    ///     .returning(&WRITE, "second", &[Result(&ENDS)], |a| ((a[0] >> 32) as i32).into());
    /// ```
    #[must_use]
    pub fn returning(
        self,
        resource: &'static Resource,
        name: &'static str,
        params: &[Param],
        run: impl Fn(&[u64]) -> i64 + 'static,
    ) -> Calls {
        self.add(name, params, Some(resource), run)
    }

    fn add(
        mut self,
        name: &'static str,
        params: &[Param],
        returns: Option<&'static Resource>,
        run: impl Fn(&[u64]) -> i64 + 'static,
    ) -> Calls {
        let (params, run) = (params.to_vec(), Box::new(run));
        self.descriptions.push(Description { name, params, returns, run });
        self
    }

    /// Makes the calls of a program, and releases what they returned, the last first.
    ///
    /// Does not allocate, except for a program that is larger than all before. Calls that do not
    /// fit their description fail without being made.
    pub fn run(&self, program: &Program) {
        let Memory { bytes, arguments, results } = &mut *self.memory.borrow_mut();
        results.clear();
        bytes.clear();
        // The memory must not move any more when the first call has its address.
        let described = program.calls.iter().filter_map(|call| self.description(call));
        bytes.resize(described.map(Description::words).sum(), 0);
        let mut free = &mut bytes[..];
        for call in &program.calls {
            let Some(description) = self.description(call) else {
                results.push(-1);
                continue;
            };
            arguments.clear();
            let mut length = 0;
            for (argument, param) in call.arguments.iter().zip(&description.params) {
                arguments.push(match argument {
                    Argument::Number(number) => *number,
                    Argument::Length => length,
                    Argument::Result(result) => result
                        .and_then(|place| results.get(place))
                        .map_or(u64::MAX, |result| *result as u64),
                    Argument::Bytes(content) => {
                        length = content.len() as u64;
                        let (here, rest) = std::mem::take(&mut free).split_at_mut(words(param));
                        free = rest;
                        store(content, here)
                    }
                });
            }
            results.push((description.run)(arguments));
        }
        for (call, result) in
            program.calls.iter().zip(&*results).rev().filter(|(_, result)| **result >= 0)
        {
            if let Some(resource) = self.descriptions[call.number].returns {
                (resource.release)(*result);
            }
        }
    }

    /// The description of a call, if the call fits it.
    fn description(&self, call: &Call) -> Option<&Description> {
        self.descriptions.get(call.number).filter(|description| description.takes(&call.arguments))
    }
}

/// The words of memory that an argument needs.
fn words(param: &Param) -> usize {
    match param {
        // Calls must not get the address of another argument, even for no bytes.
        Param::Bytes(most) => most / size_of::<u64>() + 1,
        _ => 0,
    }
}

/// Copies bytes to the start of memory, and returns its address.
fn store(content: &[u8], memory: &mut [u64]) -> u64 {
    for (word, chunk) in memory.iter_mut().zip(content.chunks(size_of::<u64>())) {
        let mut bytes = [0; size_of::<u64>()];
        bytes[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(bytes);
    }
    memory.as_mut_ptr().expose_provenance() as u64
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.descriptions.iter().map(|call| call.name)).finish()
    }
}
