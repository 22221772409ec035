//! Probing on Linux: what is not built in, and what debugfs adds.

use crate::check::{Context, checks};
use crate::raw::child;
use kcov::mode::{TraceCmp, TracePc};
use kcov::{Device, ErrorKind, Operation, Status};

checks! {
    available_without_comparisons without(Comparisons),
    nothing_instrumented without(Instrumented),
    kernel_without_kcov without(Kcov),
    kernel_without_kcov_names_the_option without(Kcov),
    no_file_system_for_it,
    no_permission seconds(20),
}

fn available_without_comparisons(cx: &Context) {
    let Status::Available(modes) = Status::probe_path(cx.device()) else {
        panic!("{}", Status::probe_path(cx.device()));
    };
    assert!(modes.contains(TracePc) && !modes.contains(TraceCmp));
}

fn nothing_instrumented(cx: &Context) {
    let Status::Silent(modes) = Status::probe_path(cx.device()) else {
        panic!("{}", Status::probe_path(cx.device()));
    };
    assert!(modes.contains(TracePc));
    let said = Status::Silent(modes).to_string();
    assert!(said.contains("no kernel code is instrumented"), "{said}");
}

fn kernel_without_kcov(cx: &Context) {
    assert_eq!(Status::probe_path(cx.device()), Status::NotBuiltIn);
    assert_eq!(Status::probe().to_string(), "this kernel has no kcov");
}

fn kernel_without_kcov_names_the_option(cx: &Context) {
    let error = Device::builder().path(cx.device()).open().expect_err("there is no device");
    assert_eq!((error.operation(), error.kind()), (Operation::Open, ErrorKind::NotBuiltIn));
    assert!(error.help().is_some_and(|help| help.contains("CONFIG_KCOV=y")), "{error}");
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
