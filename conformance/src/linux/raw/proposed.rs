//! Probes the kernel for proposed features. Another proposal may use the same number for something
//! else, so the probes check what the kernel does.

use crate::errno::{Errno, Result};
use crate::feature::Feature;
use crate::raw::{Device, KCOV_TRACE_PC, Map, call};
use kcov_sys::linux::ENOTSUPP;
use kcov_sys::linux::proposed::{
    KCOV_RECORDFLAG_TYPE_EXIT, KCOV_RECORDFLAG_TYPEMASK, KCOV_TRACE_PC_EXT, KCOV_TRACE_UNIQ_EDGE,
};

/// Whether the kernel has the feature. The device has a buffer of this many words.
pub(super) fn probe(feature: Feature, device: &Device, words: u64) -> Result<bool> {
    let not_built = Err(Errno(ENOTSUPP));
    match feature {
        Feature::TracePcExt => {
            if device.enable(KCOV_TRACE_PC_EXT).is_err() {
                return Ok(false);
            }
            let map = device.map(words)?;
            let exit =
                |word| map.load(word) & KCOV_RECORDFLAG_TYPEMASK == KCOV_RECORDFLAG_TYPE_EXIT;
            Ok((1..=recorded(&map)).any(exit))
        }
        Feature::TracePcExtNotBuilt => Ok(device.enable(KCOV_TRACE_PC_EXT) == not_built),
        Feature::UniqModes => {
            if device.enable(KCOV_TRACE_UNIQ_EDGE).is_err() {
                return Ok(false);
            }
            let bytes = usize::try_from(words).expect("the size fits") * 8;
            let offset = i64::try_from(bytes).expect("the offset fits");
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            match device.map_with(bytes, offset, prot, libc::MAP_SHARED) {
                Ok(edges) => Ok(recorded(&edges) > 0),
                Err(_) => Ok(false),
            }
        }
        Feature::UniqueEnable => {
            let bitmap = words / 2;
            if device.unique_enable(bitmap).is_err() {
                return Ok(false);
            }
            call();
            let map = device.map(words)?;
            Ok(map.load(usize::try_from(bitmap).expect("an index")) > 0)
        }
        Feature::UniqueEnableNotBuilt => Ok(device.unique_enable(0) == not_built),
        // A thread that is not enabled gets EINVAL, but so might everybody for an unknown request.
        Feature::ResetTrace => {
            Ok(device.enable(KCOV_TRACE_PC).is_ok() && device.reset_trace().is_ok())
        }
        _ => unreachable!("{feature} is not proposed"),
    }
}

/// Makes a call and returns the count.
fn recorded(map: &Map) -> usize {
    call();
    usize::try_from(map.count()).expect("a count").min(map.words() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// To these devices every request is unknown. Each says so with another error.
    #[test]
    fn an_unknown_request_is_no_proposal() {
        for (path, errno) in [("/dev/null", libc::ENOTTY), ("/dev/urandom", libc::EINVAL)] {
            let device = Device::open(Path::new(path)).expect(path);
            assert_eq!(device.reset_trace(), Err(Errno(errno)), "{path}");
            for feature in [
                Feature::TracePcExt,
                Feature::TracePcExtNotBuilt,
                Feature::UniqModes,
                Feature::UniqueEnable,
                Feature::UniqueEnableNotBuilt,
                Feature::ResetTrace,
            ] {
                assert_eq!(probe(feature, &device, 512), Ok(false), "{path}: {feature}");
            }
        }
    }
}
