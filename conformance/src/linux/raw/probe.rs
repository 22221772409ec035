//! Probes the kernel for features. Each probe runs in its own process.

use super::{
    Absent, Bluetooth, Faults, Gadget, KCOV_TRACE_CMP, KCOV_TRACE_PC, Module, Nfc, Radio, Remote,
    Ring, Symbols, Usbip, Vhost, kernel_log,
};
use crate::errno::{Errno, Result};
use crate::feature::Feature;
use crate::raw::{Device, Map, Sites, call, child, page_size, page_words, word_bytes};
use kcov_sys::linux::ENOTSUPP;
use kcov_sys::linux::proposed::{
    KCOV_RECORDFLAG_TYPE_EXIT, KCOV_RECORDFLAG_TYPEMASK, KCOV_TRACE_PC_EXT, KCOV_TRACE_UNIQ_EDGE,
};
use std::path::Path;

/// Whether the kernel has the feature.
///
/// Passes on any error other than those that mean "no".
pub fn probe(feature: Feature, device: &Path) -> Result<bool> {
    match feature {
        Feature::Long64 => return Ok(size_of::<std::ffi::c_long>() == 8),
        Feature::Words32 => return Ok(word_bytes() == 4),
        Feature::BigEndian => return Ok(cfg!(target_endian = "big")),
        Feature::Pages16K => return Ok(page_size() == 1 << 14),
        Feature::Pages64K => return Ok(page_size() == 1 << 16),
        Feature::TextAddresses => return Ok(Symbols::read()?.is_some()),
        Feature::CallSites => return Ok(Sites::given().is_some()),
        Feature::Module => return Ok(Module::is_there() && Sites::given().is_some()),
        Feature::Vhost => return present(Vhost::open().map(drop), &[libc::ENOENT]),
        Feature::Usb => return present(Gadget::open().map(drop), &[libc::ENOENT]),
        Feature::Bluetooth => {
            return present(Bluetooth::open().map(drop), &[libc::ENOENT, libc::ENODEV]);
        }
        Feature::Nfc => return present(Nfc::new().map(drop), &[libc::ENOENT]),
        Feature::Wireless => return Ok(Radio::present()),
        Feature::Usbip => return Ok(Usbip::present()),
        Feature::Quarantine => {
            return Ok(Symbols::read()?.is_some_and(|symbols| symbols.has("kasan_quarantine_put")));
        }
        Feature::Smp => {
            return Ok(std::thread::available_parallelism().is_ok_and(|number| number.get() > 1));
        }
        Feature::SelfTest => return Ok(kernel_log()?.contains("kcov: running self test")),
        Feature::Userfaultfd => return present(Absent::pages(1).map(drop), &[libc::ENOSYS]),
        Feature::FaultInjection => return Ok(Faults::present()),
        Feature::NetBsd9 | Feature::NetBsd10 | Feature::Vhci => return Ok(false),
        _ => {}
    }
    if feature == Feature::IoUring && !present(Ring::new().map(drop), &[libc::ENOSYS, libc::EPERM])?
    {
        return Ok(false);
    }
    match Device::open(device) {
        Ok(device) => probe_device(feature, &device, page_words()),
        Err(Errno(libc::ENOENT)) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn probe_device(feature: Feature, device: &Device, words: u64) -> Result<bool> {
    device.init_trace(words)?;
    match feature {
        Feature::Instrumented => records(device, words),
        Feature::Comparisons => present(device.enable(KCOV_TRACE_CMP), &[ENOTSUPP]),
        Feature::CmpBoundCheck => match device.enable(KCOV_TRACE_CMP) {
            Ok(()) => bounds_count(device, words),
            refused => present(refused, &[ENOTSUPP]),
        },
        // An invalid address: a kernel that knows the request tries to read it.
        Feature::Remote => match device.remote_enable_at(0) {
            Err(Errno(libc::EFAULT)) => Ok(true),
            other => present(other, &[libc::ENOTTY]),
        },
        Feature::LocalAndRemote => {
            device.enable(KCOV_TRACE_PC)?;
            let second = device_like(device)?;
            second.init_trace(words)?;
            let remote = Remote { common: std::process::id().into(), ..Remote::default() };
            present(second.remote_enable(&remote), &[libc::EBUSY, libc::ENOTTY])
        }
        Feature::IoUring => rings_are_marked(device, words),
        Feature::TracePcExt
        | Feature::TracePcExtNotBuilt
        | Feature::UniqModes
        | Feature::UniqueEnable
        | Feature::UniqueEnableNotBuilt
        | Feature::ResetTrace => probe_proposed(feature, device, words),
        _ => Ok(true),
    }
}

/// Whether ring work is a remote section. Earlier kernels do not annotate their ring threads.
fn rings_are_marked(device: &Device, words: u64) -> Result<bool> {
    let map = device.map(words)?;
    let remote = Remote::common(std::process::id().into());
    if !present(device.remote_enable(&remote), &[libc::ENOTTY])? {
        return Ok(false);
    }
    // The ring's thread inherits the handle. It ends with the child, and so have its sections.
    child(|| Ring::new().expect("a ring").work());
    Ok(map.count() > 0)
}

fn records(device: &Device, words: u64) -> Result<bool> {
    let map = device.map(words)?;
    device.enable(KCOV_TRACE_PC)?;
    map.reset();
    call();
    Ok(map.count() > 0)
}

/// Opens a second instance of the same device.
fn device_like(device: &Device) -> Result<Device> {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(device));
    Device::open(Path::new(&path))
}

/// Stores a count beyond the end that makes the offset wrap to the start of the buffer. A kernel
/// without the bound check then records inside the buffer and does no harm.
fn bounds_count(device: &Device, words: u64) -> Result<bool> {
    let map = device.map(words)?;
    map.fill(1, 0);
    map.store(0, 1 << 62);
    call();
    let bounded = map.count() == 1 << 62 && map.load(1) == 0 && map.load(4) == 0;
    map.reset();
    Ok(bounded)
}

fn present(result: Result<()>, absent: &[i32]) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno(number)) if absent.contains(&number) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Whether the kernel has a proposed feature. Another proposal may use the same number for something
/// else, so this checks what the kernel does. The device has a buffer of this many words.
fn probe_proposed(feature: Feature, device: &Device, words: u64) -> Result<bool> {
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
                assert_eq!(probe_proposed(feature, &device, 512), Ok(false), "{path}: {feature}");
            }
        }
    }
}
