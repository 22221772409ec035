//! Probing on NetBSD: device nodes and other files.

use crate::check::{Context, checks};
use crate::checks::api::kind;
use crate::raw::child;
use kcov::{ErrorKind, Modes};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::{Uid, setuid};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

checks! {
    "api.modes.node-without-driver": node_without_driver,
    "api.modes.no-permission": no_permission,
}

/// Returns an unused path.
fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kcov-{name}-{}", std::process::id()));
    // An earlier run may have left a file there.
    let _ = std::fs::remove_file(&path);
    path
}

fn node_without_driver(_: &Context) {
    /// A major number that no driver has.
    const NOBODY: u64 = 4000;
    let node = path("node");
    let device = (NOBODY << 8 & 0x000f_ff00) as libc::dev_t;
    let made = mknod(&node, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, device);
    made.expect("root makes a node");
    let probed = Modes::probe_path(&node);
    std::fs::remove_file(&node).expect("the node");
    assert_eq!(kind(probed), ErrorKind::NotBuiltIn);
}

fn no_permission(_: &Context) {
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
}
