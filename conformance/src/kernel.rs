//! The running kernel's release.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A kernel version, as precise as claims need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(pub u32, pub u32);

impl Version {
    /// Parses the two leading numbers of a release such as `7.3.4-1` or `10.99.12`.
    pub fn of_release(release: &str) -> Option<Version> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        Some(Version(major, minor))
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        match Version::of_release(&text) {
            Some(version) if version.to_string() == text => Ok(version),
            _ => Err(format!("{text:?} is not a version such as \"7.2\"")),
        }
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The running kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// System, release and machine, as from `uname`.
    pub name: String,
    /// The version to compare claims with.
    pub version: Version,
}

impl Kernel {
    /// Queries the running kernel.
    pub fn running() -> Result<Kernel, String> {
        let uname = nix::sys::utsname::uname().map_err(|e| format!("uname failed: {e}"))?;
        let release = uname.release().to_string_lossy();
        let version = Version::of_release(&release)
            .ok_or_else(|| format!("no version in the kernel's release {release:?}"))?;
        let system = uname.sysname().to_string_lossy();
        let machine = uname.machine().to_string_lossy();
        Ok(Kernel { name: format!("{system} {release} {machine}"), version })
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn releases_are_read_as_far_as_the_minor_number() {
        for (release, version) in [
            ("7.3.4-1~bpo13+1", Version(7, 3)),
            ("6.12.117", Version(6, 12)),
            ("7.3-rc1", Version(7, 3)),
            ("10.99.12", Version(10, 99)),
        ] {
            assert_eq!(Version::of_release(release), Some(version));
        }
        assert_eq!(Version::of_release("seven"), None);
        assert!(Version(6, 12) < Version(7, 2) && Version(6, 2) < Version(6, 12));
    }

    #[test]
    fn a_claim_states_a_version_in_one_form_only() {
        assert_eq!(Version::try_from("7.2".to_owned()), Ok(Version(7, 2)));
        assert!(Version::try_from("7.2.1".to_owned()).is_err());
        assert!(Version::try_from("7".to_owned()).is_err());
    }
}
