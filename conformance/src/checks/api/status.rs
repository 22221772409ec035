//! Probing.

use super::{enable, is_free, open};
use crate::check::{Context, checks};
use crate::raw::call;
use kcov::Status;
use kcov::mode::{TraceCmp, TraceNone, TracePc};

checks! {
    available_with_comparisons needs(Comparisons),
    available_without_comparisons without(Comparisons),
    probing_leaves_nothing_behind,
    probing_while_traced,
    nothing_built_in,
    no_file_system_for_it,
    no_permission seconds(20),
}

fn available_with_comparisons(cx: &Context) {
    let Status::Available(modes) = Status::probe_path(cx.device()) else {
        panic!("{}", Status::probe_path(cx.device()));
    };
    assert!(modes.contains(TracePc) && modes.contains(TraceCmp));
    assert_eq!(modes.contains(TraceNone), cfg!(target_os = "netbsd"));
}

fn available_without_comparisons(cx: &Context) {
    let Status::Available(modes) = Status::probe_path(cx.device()) else {
        panic!("{}", Status::probe_path(cx.device()));
    };
    assert!(modes.contains(TracePc) && !modes.contains(TraceCmp));
}

fn probing_leaves_nothing_behind(cx: &Context) {
    let open_before = std::fs::read_dir("/proc/self/fd").expect("descriptors").count();
    for _ in 0..10 {
        assert!(matches!(Status::probe_path(cx.device()), Status::Available(_)));
    }
    assert!(is_free(cx));
    assert_eq!(std::fs::read_dir("/proc/self/fd").expect("descriptors").count(), open_before);
}

fn probing_while_traced(cx: &Context) {
    let mut device = open(cx, 1 << 16);
    let mut session = enable(&mut device);
    assert!(matches!(Status::probe_path(cx.device()), Status::Available(_)));
    session.reset();
    call();
    assert!(!session.disable().expect("still enabled").is_empty());
}

fn nothing_built_in(cx: &Context) {
    let missing = cx.device().with_file_name("kcov-is-not-here");
    assert_eq!(Status::probe_path(missing), Status::NotBuiltIn);
}

fn no_file_system_for_it(_: &Context) {
    assert_eq!(Status::probe_path("/proc/kcov"), Status::DebugfsNotMounted);
}

fn no_permission(cx: &Context) {
    let status = crate::raw::child(|| {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("another user");
        Status::probe_path(cx.device()).to_string()
    });
    assert_eq!(status, Status::PermissionDenied.to_string());
}
