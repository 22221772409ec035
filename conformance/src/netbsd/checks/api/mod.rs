//! Checks of the safe crate that only apply to NetBSD.

mod remote;

use crate::checks::api::*;
use kcov_signal::{KernelText, KernelTextError};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::{Uid, setuid};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

pub const CHECKS: &[&[Check]] = &[OWN, remote::CHECKS];

/// Returns an unused path.
fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kcov-{name}-{}", std::process::id()));
    // An earlier run may have left a file there.
    let _ = std::fs::remove_file(&path);
    path
}

/// Opening, probing and sessions.
const OWN: &[Check] = &[
    check("api.device.limits-are-the-drivers", |_| {
        assert_eq!(BufferSize::limits(), crate::raw::page_words()..=256 << 10);
    }),
    check("api.device.default-size-is-the-greatest", |cx| {
        let greatest = *BufferSize::limits().end();
        let mut device = open(cx, greatest);
        assert_eq!(device.words() as u64, greatest);
        assert_eq!(device.capacity(TracePc), (256 << 10) - 1);
        assert_eq!(device.capacity(TraceCmp), ((256 << 10) - 1) / 4);
        let session = enable(&mut device);
        call();
        assert!(!session.trace().is_empty());
    }),
    on_crate("api.session.leaked-in-ended-thread", 1, |_, mut device| {
        thread(|| std::mem::forget(enable(&mut device)));
        let device = std::cell::RefCell::new(device);
        let enabled = wait_for(LONG, || {
            // The kernel may only free the ended thread's data when another thread starts or ends.
            thread(|| ());
            match device.borrow_mut().enable(kcov::mode::TracePc) {
                Ok(_) => true,
                Err(error) if error.kind() == ErrorKind::AlreadyEnabled => false,
                Err(error) => panic!("{error}"),
            }
        });
        assert!(enabled, "the device is free again");
    }),
    check("api.session.thread-whose-device-was-dropped-elsewhere", |cx| {
        thread(|| {
            let mut device = open(cx, 1);
            std::mem::forget(enable(&mut device));
            thread(move || drop(device));
            assert!(!is_free(cx), "traced until it ends");
        });
        thread(|| assert!(is_free(cx), "another thread is free"));
    }),
    check("api.modes.node-without-driver", |_| {
        /// A major number that no driver has.
        const NOBODY: u64 = 4000;
        let node = path("node");
        let device = (NOBODY << 8 & 0x000f_ff00) as libc::dev_t;
        let made = mknod(&node, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, device);
        made.expect("root makes a node");
        let probed = Modes::probe_path(&node);
        std::fs::remove_file(&node).expect("the node");
        assert_eq!(kind(probed), ErrorKind::NotBuiltIn);
    }),
    check("api.modes.no-permission", |_| {
        let file = path("closed");
        std::fs::write(&file, "").expect("a file");
        std::fs::set_permissions(&file, Permissions::from_mode(0o000)).expect("its mode");
        let said: String = child(|| {
            if Uid::current().is_root() {
                setuid(Uid::from_raw(32767)).expect("another user");
            }
            format!("{:?}", kind(Modes::probe_path(&file)))
        });
        std::fs::remove_file(&file).expect("the file");
        assert_eq!(said, "PermissionDenied");
    }),
    check("api.kernel-text.not-read-here", |_| {
        let error = KernelText::read().expect_err("there is no such file");
        assert!(matches!(error, KernelTextError::Unreadable(_)), "{error}");
    }),
];
