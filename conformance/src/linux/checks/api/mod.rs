//! Checks of the safe crate that only apply to Linux.

mod proposed;
mod remote;

use crate::checks::api::inherited::{leaves_others_alone, private, works_and_ends};
use crate::checks::api::lost::gives_up;
use crate::checks::api::*;
use kcov::remote::linux::{CommonHandle, Remote};
use kcov_signal::{KernelText, KernelTextError};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::ftruncate;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

pub const CHECKS: &[&[Check]] =
    &[OWN, remote::CHECKS, remote::sections::CHECKS, remote::late::CHECKS, proposed::CHECKS];

fn refused(path: &Path) -> Error {
    let error = Device::builder().path(path).open().expect_err("not kcov");
    assert_eq!((error.kind(), error.path()), (ErrorKind::NotKcov, Some(path)));
    error
}

/// Asserts that a buffer is lost, and that an access would end this process.
#[track_caller]
fn is_lost(buffer: &mut ChildBuffer<TracePc, &mut Device>) {
    assert_eq!(kind(buffer.trace()), ErrorKind::BufferLost);
    assert_eq!(kind(buffer.device().check_readable()), ErrorKind::BufferLost);
    let access = Child::start(|| buffer.reset());
    assert_eq!(access.outcome(), Err(Signal::SIGBUS));
}

/// Runs a closure as the first process of a new namespace.
fn first_process(body: impl FnOnce()) {
    unshare(CloneFlags::CLONE_NEWPID).expect("a namespace of processes");
    child(|| {
        assert_eq!(getpid(), Pid::from_raw(1));
        body();
    });
}

/// Restores the setting when dropped, even if the check fails.
struct Setting(String);

const RESTRICT: &str = "/proc/sys/kernel/kptr_restrict";

impl Drop for Setting {
    fn drop(&mut self) {
        fs::write(RESTRICT, &self.0).expect("the old setting");
    }
}

/// Opening, probing, sessions and children.
const OWN: &[Check] = &[
    check("api.path.other-files-are-not-asked", |cx| {
        let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
        let of_tmpfs = nix::sys::memfd::memfd_create("not-kcov", flags).expect("a file of tmpfs");
        let of_tmpfs = format!("/proc/self/fd/{}", of_tmpfs.as_raw_fd());
        for path in [of_tmpfs.as_str(), "/dev/null", "/proc/self/comm"] {
            let error = refused(Path::new(path));
            // A request would have left its errno.
            let expected = (Operation::Open, None);
            assert_eq!((error.operation(), error.raw_os_error()), expected, "{path}");
        }
        // The device opens under another name too.
        let device = open(cx, 1);
        let name = format!("/proc/self/fd/{}", descriptor(&device));
        let another = Device::builder().path(name).size(BufferSize::words(4096)).open();
        records(&mut another.expect("opened by another name"));
    }),
    check("api.path.other-files-of-debugfs-refuse", |cx| {
        // debugfs has files without ioctls.
        let file = cx.device().with_file_name("clear_warn_once");
        let error = refused(&file);
        let expected = (Operation::SetSize, Some(libc::ENOTTY));
        assert_eq!((error.operation(), error.raw_os_error()), expected);
    }),
    check("api.path.unchecked-path", |cx| {
        // SAFETY: the path is that of the kcov device.
        let builder = unsafe { Device::builder().path_unchecked(cx.device()) };
        records(&mut builder.size(BufferSize::words(4096)).open().expect("it opens"));
    }),
    on_crate("api.session.mode-not-built-in-is-named", 1, |_, mut device| {
        let refused = device.enable(TraceCmp);
        let error = fails(refused, Operation::Enable, ErrorKind::ModeNotBuiltIn);
        assert!(error.help().is_some_and(|help| help.contains("CONFIG_KCOV_ENABLE_COMPARISONS")));
        drop(enable(&mut device));
    }),
    on_crate("api.session.leaked-in-ended-thread", 1, |_, mut device| {
        thread(|| std::mem::forget(enable(&mut device)));
        assert!(!of_a_call(enable(&mut device)).trace().is_empty());
    }),
    // Drops a local and a remote session and their devices in either order. The rest keeps working.
    check("api.session.dropped-in-every-order", |cx| {
        let remote = Remote::new().common(CommonHandle::new(NonZeroU32::MIN));
        for local_first in [true, false] {
            let (mut one, mut other) = (open(cx, 1), open(cx, 1));
            let mut local = Some(enable(&mut one));
            let mut background = Some(other.enable_remote(TracePc, &remote).expect("both at once"));
            if local_first {
                drop(local.take());
                drop(background.take());
            } else {
                drop(background.take());
                let session = local.as_mut().expect("still there");
                session.reset();
                call();
                assert!(!session.trace().is_empty(), "the local session goes on");
            }
            drop((local, background));
            drop((one, other));
            assert!(is_free(cx));
            drop(open(cx, 1).enable_remote(TracePc, &remote).expect("the handle is free"));
        }
        // If both sessions are leaked, dropping the devices has to disable.
        for local_first in [true, false] {
            let (mut one, mut other) = (open(cx, 1), open(cx, 1));
            std::mem::forget(enable(&mut one));
            std::mem::forget(other.enable_remote(TracePc, &remote).expect("both at once"));
            let (first, second) = if local_first { (one, other) } else { (other, one) };
            drop(first);
            drop(second);
            assert!(is_free(cx));
            drop(open(cx, 1).enable_remote(TracePc, &remote).expect("the handle is free"));
        }
    }),
    on_crate("api.child-buffer.mode-not-built-in-is-refused", 1, |cx, mut device| {
        assert_eq!(kind(device.child_buffer(TraceCmp)), ErrorKind::ModeNotBuiltIn);
        drop(device.into_child_buffer(TracePc).expect("the other mode"));
        assert_eq!(kind(open(cx, 1).into_child_buffer(TraceCmp)), ErrorKind::ModeNotBuiltIn);
    }),
    check("api.child-buffer.made-while-this-thread-is-traced", |cx| {
        let (mut traced, mut device) = (open(cx, 1 << 16), open(cx, 1 << 16));
        let session = enable(&mut traced);
        let mut buffer = lend(&mut device);
        assert!(left(&buffer).is_empty());
        // The child does not inherit the tracing, so it may enable.
        let seen =
            child(|| of_a_call(buffer.enable().expect("enabled in the child")).trace().len());
        assert!(seen > 0 && left(&buffer).len() == seen);
        let recorded = of_a_call(session);
        assert!(!recorded.trace().is_empty(), "this thread was traced all the time");

        // A device that another thread is traced into is still refused.
        with_device_of_a_living_thread(cx, |device, _| {
            let session = enable(&mut traced);
            assert_eq!(kind(device.into_child_buffer(TracePc)), ErrorKind::AlreadyEnabled);
            drop(session);
        });
    }),
    check("api.adopt.smaller-size-is-refused", |cx| {
        let given = OwnedFd::from(open(cx, 2 * page_words()));
        // SAFETY: Linux only maps a whole buffer, so it refuses this size.
        let refused = unsafe { Device::adopt(given, index(page_words())) };
        assert_eq!(refused.expect_err("another size").operation(), Operation::Map);
    }),
    check("api.lost.truncated-device-is-noticed", |cx| {
        let (mut device, other) = (open(cx, 4096), open(cx, 4096));
        let mut buffer = lend(&mut device);
        assert!(left(&buffer).is_empty());
        ftruncate(other.as_fd(), 0).expect("root truncates");
        is_lost(&mut buffer);
        // All devices have one file.
        assert_eq!(kind(other.check_readable()), ErrorKind::BufferLost);
        other.abandon();
        gives_up(cx, device);
    }),
    on_crate("api.lost.device-truncated-by-a-child-is-noticed", 4096, |cx, mut device| {
        let mut buffer = lend(&mut device);
        child(|| {
            let session = buffer.enable().expect("enabled in the child");
            call();
            ftruncate(session.device().as_fd(), 0).expect("root truncates");
            std::mem::forget(session);
        });
        is_lost(&mut buffer);
        gives_up(cx, device);
    }),
    check("api.lost.partly-truncated-device-is-noticed", |cx| {
        let mut device = open(cx, 4 * page_words());
        let full = device.capacity(TracePc) as u64;
        let map = intruder(&device);
        let buffer = lend(&mut device);
        let bytes = libc::off_t::try_from(page_size()).expect("a size");
        ftruncate(buffer.device().as_fd(), bytes).expect("root truncates");
        assert_eq!(kind(buffer.device().check_readable()), ErrorKind::BufferLost);
        map.store(0, 1);
        assert_eq!(left(&buffer).len(), 1, "what is left of it can be read");
        map.store(0, full);
        assert_eq!(kind(buffer.trace()), ErrorKind::BufferLost);
        gives_up(cx, device);
    }),
    check("api.inherited.child-with-its-parents-process-id", |cx| {
        first_process(|| {
            let (device, place) = private(cx);
            let mut device = Some(device);
            first_process(|| leaves_others_alone(device.take(), &place));
            works_and_ends(cx, device.expect("the parent's"), &place);
        });
    }),
    check("api.modes.available-without-comparisons", |cx| {
        let modes = Modes::probe_path(cx.device()).expect("it works");
        assert!(modes.contains(TracePc) && !modes.contains(TraceCmp));
    }),
    check("api.modes.nothing-instrumented", |cx| {
        let error = Modes::probe_path(cx.device()).expect_err("nothing is recorded");
        assert_eq!(error.kind(), ErrorKind::NotInstrumented);
        assert!(error.to_string().contains("no kernel code is instrumented"), "{error}");
    }),
    check("api.modes.kernel-without-kcov", |cx| {
        assert_eq!(kind(Modes::probe_path(cx.device())), ErrorKind::NotBuiltIn);
        let error = Modes::probe().expect_err("there is no device");
        assert!(error.to_string().contains("this kernel has no kcov"), "{error}");
    }),
    check("api.modes.kernel-without-kcov-names-the-option", |cx| {
        let opened = Device::builder().path(cx.device()).open();
        let error = fails(opened, Operation::Open, ErrorKind::NotBuiltIn);
        assert!(error.help().is_some_and(|help| help.contains("CONFIG_KCOV=y")), "{error}");
    }),
    check("api.modes.no-file-system-for-it", |_| {
        assert_eq!(kind(Modes::probe_path("/proc/kcov")), ErrorKind::DebugfsNotMounted);
    }),
    slow("api.modes.no-permission", 20, |cx| {
        let said: String = child(|| {
            nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("another user");
            format!("{:?}", kind(Modes::probe_path(cx.device())))
        });
        assert_eq!(said, "PermissionDenied");
    }),
    check("api.kernel-text.records-lie-in-it", |cx| {
        let text = KernelText::read().expect("root may read it");
        assert_eq!(text.link_time(), symbols().text(), "as the suite finds it");
        let offset = text.kaslr_offset();
        assert_eq!(text.link_time().start.wrapping_add(offset), text.run_time().start);
        let mut device = open(cx, 1 << 16);
        let recorded = of_a_call(enable(&mut device));
        let trace = recorded.trace();
        assert!(!trace.is_empty());
        for pc in trace.iter() {
            assert!(text.link_time().contains(&pc.address()), "{pc} is not in {text:x?}");
            let running = pc.run_time(offset).address();
            assert!(text.run_time().contains(&running), "{running:#x} is not in {text:x?}");
        }
    }),
    // The length of a call depends on the kernel, which may be User-Mode Linux: a program,
    // in the lower half of the addresses.
    check("api.kernel-text.calls-lie-in-it", |cx| {
        let (text, symbols) = (symbols().text(), symbols());
        let running = Arch::running().expect("an architecture that the library knows");
        let is_program = Arch::HOST == Some(Arch::X86_64) && text.end >> 63 == 0;
        assert_eq!(running, if is_program { Arch::Um64 } else { Arch::HOST.expect("known") });
        let mut device = open(cx, 1 << 16);
        let recorded = of_a_call(enable(&mut device));
        assert!(!recorded.trace().is_empty());
        for pc in recorded.trace().iter() {
            let site = pc.call_site(running).address();
            assert!(text.contains(&site), "{pc}: {site:#x} is not in {text:x?}");
            // `names` takes the address after the call.
            assert_eq!(symbols.names(site + 1), symbols.names(pc.address()), "{pc}: {site:#x}");
        }
    }),
    slow("api.kernel-text.hidden-from-other-users", 20, |_| {
        let said: String = child(|| {
            nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("another user");
            KernelText::read().expect_err("not for everybody").to_string()
        });
        assert_eq!(said, KernelTextError::Hidden.to_string());
    }),
    check("api.kernel-text.hidden-from-everybody", |_| {
        let before = Setting(fs::read_to_string(RESTRICT).expect("the setting"));
        fs::write(RESTRICT, "2").expect("root may set it");
        let error = KernelText::read().expect_err("nobody may see them");
        assert!(matches!(error, KernelTextError::Hidden), "{error}");
        assert!(error.to_string().contains("kptr_restrict"), "{error}");
        drop(before);
        assert!(KernelText::read().is_ok(), "as before");
    }),
];
