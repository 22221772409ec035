//! Checks, and the context that their bodies get.

use crate::claims::{Claim, Claims};
use crate::errno::{Errno, Result};
use crate::raw::{Device, Map};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A check does its usual number of rounds up to this time limit.
const USUAL_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Check {
    /// The id of the check and of its claim, which has the check's needs.
    pub id: &'static str,
    seconds: u64,
    body: Body,
}

/// The body of a check, after the function that sets up its device.
#[derive(Debug)]
enum Body {
    Alone(fn(&Context)),
    Device(fn(&Context) -> Device, fn(&Context, Device)),
    Buffer(fn(&Context) -> (Device, Map), fn(&Context, Device, Map)),
    Crate(fn(&Context, u64) -> kcov::Device, u64, fn(&Context, kcov::Device)),
}

/// Declares a check of the claim with this id.
pub(crate) const fn check(id: &'static str, body: fn(&Context)) -> Check {
    slow(id, 0, body)
}

/// Declares a check whose time limit, if there is one, is at least so many seconds.
pub(crate) const fn slow(id: &'static str, seconds: u64, body: fn(&Context)) -> Check {
    Check { id, seconds, body: Body::Alone(body) }
}

/// Declares a check on a device in this state.
pub(crate) const fn on_device(
    id: &'static str,
    state: fn(&Context) -> Device,
    body: fn(&Context, Device),
) -> Check {
    Check { id, seconds: 0, body: Body::Device(state, body) }
}

/// Declares a check on a device in this state, with a mapping of its buffer.
pub(crate) const fn on_buffer(
    id: &'static str,
    state: fn(&Context) -> (Device, Map),
    body: fn(&Context, Device, Map),
) -> Check {
    Check { id, seconds: 0, body: Body::Buffer(state, body) }
}

/// Declares a check on a device of the safe crate, which `open` opens with at least this many words.
pub(crate) const fn on_crate_by(
    open: fn(&Context, u64) -> kcov::Device,
    id: &'static str,
    words: u64,
    body: fn(&Context, kcov::Device),
) -> Check {
    Check { id, seconds: 0, body: Body::Crate(open, words, body) }
}

impl Check {
    /// The time limit of this check: `usual`, unless it needs more.
    pub fn time_limit(&self, usual: Option<Duration>) -> Option<Duration> {
        usual.map(|usual| usual.max(Duration::from_secs(self.seconds)))
    }

    /// Runs the check in this process. Returns if the kernel keeps the claim, and panics if not.
    pub fn run(&self, claims: &Claims, device: &Path, limit: Option<Duration>) {
        let claim = claims.of_check(self.id).clone();
        let limit = limit.unwrap_or(USUAL_LIMIT);
        let cx = Context { claim, device: device.to_owned(), limit };
        match self.body {
            Body::Alone(body) => body(&cx),
            Body::Device(state, body) => body(&cx, state(&cx)),
            Body::Buffer(state, body) => {
                let (device, map) = state(&cx);
                body(&cx, device, map);
            }
            Body::Crate(open, words, body) => body(&cx, open(&cx, words)),
        }
    }
}

/// The context of a check: its claim and the path of the device.
#[derive(Debug)]
pub struct Context {
    claim: Claim,
    device: PathBuf,
    limit: Duration,
}

impl Context {
    /// The number of rounds of a repeating check: `usual`, and proportionally more with a time limit
    /// of more than a minute. The time that they take does not affect the verdict.
    pub fn rounds(&self, usual: u64) -> u64 {
        usual * (self.limit.as_secs() / USUAL_LIMIT.as_secs()).max(1)
    }

    pub fn device(&self) -> &Path {
        &self.device
    }

    pub fn errno(&self) -> Errno {
        let number = self.claim.errno.and_then(Errno::by_name);
        number.expect("the claim of this check names an errno")
    }

    /// Asserts that the call failed with exactly the errno in the claim.
    #[track_caller]
    pub fn refused<T: Debug>(&self, result: Result<T>) {
        let expected = self.errno();
        match result {
            Err(errno) if errno == expected => {}
            Err(errno) => panic!("refused with {errno}, the claim says {expected}"),
            Ok(value) => panic!("succeeded with {value:?}, the claim says {expected}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rounds_follow_from_the_time_limit() {
        let claims = crate::claims::Claims::of_system();
        let claim = claims.iter().next().expect("a claim").clone();
        let of = |seconds| super::Context {
            claim: claim.clone(),
            device: "/dev/null".into(),
            limit: std::time::Duration::from_secs(seconds),
        };
        assert_eq!([of(60).rounds(50), of(1200).rounds(50)], [50, 1000]);
    }
}
