//! Probing on Linux: comparisons that are not built in, and what debugfs adds.

use crate::check::{Context, checks};
use crate::raw::child;
use kcov::Status;
use kcov::mode::{TraceCmp, TracePc};

checks! {
    available_without_comparisons without(Comparisons),
    no_file_system_for_it,
    no_permission seconds(20),
}

fn available_without_comparisons(cx: &Context) {
    let Status::Available(modes) = Status::probe_path(cx.device()) else {
        panic!("{}", Status::probe_path(cx.device()));
    };
    assert!(modes.contains(TracePc) && !modes.contains(TraceCmp));
}

fn no_file_system_for_it(_: &Context) {
    assert_eq!(Status::probe_path("/proc/kcov"), Status::DebugfsNotMounted);
}

fn no_permission(cx: &Context) {
    let status = child(|| {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("another user");
        Status::probe_path(cx.device()).to_string()
    });
    assert_eq!(status, Status::PermissionDenied.to_string());
}
