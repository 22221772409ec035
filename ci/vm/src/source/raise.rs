//! Raises the locked versions.

use super::Package;
use crate::cache::Cache;
use crate::error::{Error, Phase, Result, WRITING};
use crate::target::{Pin, Pins, Wanted};
use std::fmt::Write as _;
use std::path::Path;

/// Locks the newest version of each package. Returns the changes, one per line.
pub fn raise(base: &Path, wanted: &[Wanted], cache: &Cache) -> Result<String> {
    let (mut pins, mut changes) = (Pins::default(), String::new());
    for Wanted { pattern, suite, pin: before } in wanted {
        let newest = Wanted { pattern: pattern.clone(), suite: suite.clone(), pin: None };
        let Package { name, version, .. } = Package::searched(&newest, cache)?
            .map_err(|why| Error::unavailable(Phase::Source, why))?;
        let pin = Pin { pattern: pattern.clone(), suite: suite.clone(), name, version };
        if before.as_ref() != Some(&pin) {
            let before = before.as_ref().map_or("not locked".into(), Pin::text);
            writeln!(changes, "{pattern} ({suite}): {before} -> {}", pin.text()).expect(WRITING);
        }
        pins.package.push(pin);
    }
    pins.store(base)?;
    Ok(changes)
}
