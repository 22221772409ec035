//! Checks, and the context that their bodies get.

use crate::claims::{Claim, Claims};
use crate::errno::{Errno, Result};
use crate::feature::Feature;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time limit of a check, unless the command line sets another. A correct kernel on a busy host
/// stays far below it.
pub const USUAL_LIMIT: Duration = Duration::from_secs(60);

/// One check. Only `checks!` declares one; the id comes from the function's path.
#[derive(Debug)]
pub struct Check {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    /// Features that the check needs, in addition to those that nearly all checks need.
    pub needs: &'static [Feature],
    /// Features that must be absent for the check.
    pub without: &'static [Feature],
    pub(crate) seconds: &'static [u64],
    pub(crate) body: fn(&Context),
}

impl Check {
    /// The id of the check and its claim: the module's path below the directory of the system or of
    /// `shared`, and the function's name.
    #[must_use]
    pub fn id(&self) -> String {
        let mut id = String::new();
        for part in self.module.split("::").skip(2).filter(|&part| part != "shared") {
            id.push_str(part);
            id.push('.');
        }
        id.push_str(self.name);
        id.replace('_', "-")
    }

    /// All features that the check needs.
    ///
    /// A check needs the device and instrumented code, unless it tests their absence.
    pub fn needed(&self) -> impl Iterator<Item = Feature> {
        let lacks = |feature| self.without.contains(&feature);
        let device = !lacks(Feature::Kcov);
        let records = device && !lacks(Feature::Instrumented);
        let implied = [(Feature::Kcov, device), (Feature::Instrumented, records)];
        let implied = implied.into_iter().filter(|(_, needed)| *needed).map(|(feature, _)| feature);
        implied.chain(self.needs.iter().copied())
    }

    /// The time limit of this check: `usual`, unless it needs more.
    #[must_use]
    pub fn time_limit(&self, usual: Duration) -> Duration {
        self.seconds.iter().fold(usual, |limit, &seconds| limit.max(Duration::from_secs(seconds)))
    }

    /// Runs the check in this process. Returns if the kernel keeps the claim, and panics if not.
    pub fn run(&self, claims: &Claims, device: &Path, limit: Duration) {
        let claim = claims.get(&self.id()).expect("every check has its claim").clone();
        (self.body)(&Context { claim, device: device.to_owned(), limit });
    }
}

/// Declares the checks of a module: function names, each with what it needs.
///
/// ```text
/// checks! {
///     twice,
///     switch_cases needs(Comparisons),
///     refused_if_not_built without(Comparisons),
///     slow seconds(30),
/// }
/// ```
macro_rules! checks {
    ($(
        $name:ident
        $(needs($($need:ident),+))?
        $(without($($absent:ident),+))?
        $(seconds($seconds:literal))?
    ),* $(,)?) => {
        pub(crate) const CHECKS: &[$crate::check::Check] = &[$(
            $crate::check::Check {
                module: module_path!(),
                name: stringify!($name),
                needs: &[$($($crate::feature::Feature::$need),+)?],
                without: &[$($($crate::feature::Feature::$absent),+)?],
                seconds: &[$($seconds)?],
                body: $name,
            }
        ),*];
    };
}
pub(crate) use checks;

/// The context of a check: its claim and the path of the device.
#[derive(Debug)]
pub struct Context {
    claim: Claim,
    device: PathBuf,
    limit: Duration,
}

impl Context {
    /// The number of rounds of a repeating check: `usual` at the usual time limit, and
    /// proportionally more with a longer one. The time that they take does not affect the verdict.
    #[must_use]
    pub fn rounds(&self, usual: u64) -> u64 {
        usual * (self.limit.as_secs() / USUAL_LIMIT.as_secs()).max(1)
    }

    /// The path of the device.
    #[must_use]
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// The errno in the claim.
    ///
    /// # Panics
    ///
    /// If the claim has none.
    #[must_use]
    pub fn errno(&self) -> Errno {
        self.claim.errno.expect("the claim of this check names an errno")
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
    mod topic {
        fn second_time_on_one_thread(_: &crate::check::Context) {}
        fn without_the_device(_: &crate::check::Context) {}
        fn without_records(_: &crate::check::Context) {}
        checks! {
            second_time_on_one_thread needs(Remote) seconds(30),
            without_the_device without(Kcov),
            without_records without(Instrumented),
        }
    }

    #[test]
    fn the_device_and_its_records_are_needed_unless_it_is_about_their_absence() {
        use super::Feature::{Instrumented, Kcov, Remote};
        let needed = topic::CHECKS.iter().map(|check| check.needed().collect::<Vec<_>>());
        let expected = [vec![Kcov, Instrumented, Remote], vec![], vec![Kcov]];
        assert_eq!(needed.collect::<Vec<_>>(), expected);
    }

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

    #[test]
    fn the_id_is_where_the_function_stands() {
        let check = &topic::CHECKS[0];
        // The module of these tests is one level deeper than a system's topics.
        assert_eq!(check.id(), "tests.topic.second-time-on-one-thread");
        assert_eq!(check.time_limit(std::time::Duration::ZERO).as_secs(), 30);
    }
}
