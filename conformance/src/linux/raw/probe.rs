//! Probes the kernel for features. Each probe runs in its own process.

use super::*;
use crate::feature::Feature;
use kcov_sys::linux::ENOTSUPP;
use kcov_sys::linux::proposed::{
    KCOV_RECORDFLAG_TYPE_EXIT, KCOV_RECORDFLAG_TYPEMASK, KCOV_TRACE_PC_EXT, KCOV_TRACE_UNIQ_EDGE,
};

/// Whether the kernel has the feature.
///
/// Passes on any error other than those that mean "no".
pub fn probe(feature: Feature, device: &Path) -> Result<bool> {
    Ok(match feature {
        Feature::Long64 => size_of::<std::ffi::c_long>() == 8,
        Feature::Words32 => word_bytes() == 4,
        Feature::BigEndian => cfg!(target_endian = "big"),
        Feature::Pages16K => page_size() == 1 << 14,
        Feature::Pages64K => page_size() == 1 << 16,
        Feature::TextAddresses => Symbols::read()?.is_some(),
        Feature::CallSites => Sites::given().is_some(),
        Feature::Module => Module::is_there() && Sites::given().is_some(),
        Feature::Vhost => present(Vhost::open(), &[libc::ENOENT])?,
        Feature::Usb => present(Gadget::open(), &[libc::ENOENT])?,
        Feature::Bluetooth => present(Bluetooth::open(), &[libc::ENOENT, libc::ENODEV])?,
        Feature::Nfc => present(Nfc::new(), &[libc::ENOENT])?,
        Feature::Wireless => Radio::present(),
        Feature::Usbip => Usbip::present(),
        Feature::Quarantine => Symbols::read()?.is_some_and(|it| it.has("kasan_quarantine_put")),
        Feature::Smp => std::thread::available_parallelism().is_ok_and(|number| number.get() > 1),
        Feature::SelfTest => kernel_log()?.contains("kcov: running self test"),
        Feature::Userfaultfd => present(Absent::pages(1), &[libc::ENOSYS])?,
        Feature::FaultInjection => Faults::present(),
        Feature::NetBsd9 | Feature::NetBsd10 | Feature::Vhci => false,
        Feature::IoUring if !present(Ring::new(), &[libc::ENOSYS, libc::EPERM])? => false,
        _ => match Device::open(device) {
            Ok(device) => probe_device(feature, &device, page_words())?,
            Err(Errno(libc::ENOENT)) => false,
            Err(errno) => return Err(errno),
        },
    })
}

fn probe_device(feature: Feature, device: &Device, words: u64) -> Result<bool> {
    device.init_trace(words)?;
    match feature {
        Feature::Kcov => Ok(true),
        Feature::Instrumented => {
            let map = device.map(words)?;
            device.enable(KCOV_TRACE_PC)?;
            map.reset();
            Ok(recorded(&map) > 0)
        }
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
            // Another instance of the same device.
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(device));
            let second = Device::open(Path::new(&path))?;
            second.init_trace(words)?;
            let remote = Remote::common(std::process::id().into());
            present(second.remote_enable(&remote), &[libc::EBUSY, libc::ENOTTY])
        }
        Feature::IoUring => rings_are_marked(device, words),
        _ => probe_proposed(feature, device, words),
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

fn present<T>(result: Result<T>, absent: &[i32]) -> Result<bool> {
    match result {
        Ok(_) => Ok(true),
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
            let kind = |word| map.load(word) & KCOV_RECORDFLAG_TYPEMASK;
            Ok((1..=recorded(&map)).any(|word| kind(word) == KCOV_RECORDFLAG_TYPE_EXIT))
        }
        Feature::TracePcExtNotBuilt => Ok(device.enable(KCOV_TRACE_PC_EXT) == not_built),
        Feature::UniqModes => {
            let edges = device.enable(KCOV_TRACE_UNIQ_EDGE).and_then(|()| device.map_edges(words));
            Ok(edges.is_ok_and(|edges| recorded(&edges) > 0))
        }
        Feature::UniqueEnable => {
            let bitmap = words / 2;
            if device.unique_enable(bitmap).is_err() {
                return Ok(false);
            }
            call();
            Ok(device.map(words)?.load(usize::try_from(bitmap).expect("an index")) > 0)
        }
        Feature::UniqueEnableNotBuilt => Ok(device.unique_enable(0) == not_built),
        // A thread that is not enabled gets EINVAL, but so might everybody for an unknown request.
        Feature::ResetTrace => {
            Ok(device.enable(KCOV_TRACE_PC).is_ok() && device.reset_trace().is_ok())
        }
        _ => unreachable!("no probe of {feature}"),
    }
}

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
            use Feature::*;
            let built = [TracePcExt, UniqModes, UniqueEnable, ResetTrace];
            for feature in built.into_iter().chain([TracePcExtNotBuilt, UniqueEnableNotBuilt]) {
                assert_eq!(probe_proposed(feature, &device, 512), Ok(false), "{path}: {feature}");
            }
        }
    }
}
