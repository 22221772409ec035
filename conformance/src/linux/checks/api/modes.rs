//! Probing on Linux: modes that are not built in, and the effects of debugfs.

use crate::check::{Context, checks};
use crate::checks::api::kind;
use crate::raw::child;
use kcov::mode::{TraceCmp, TracePc};
use kcov::{Device, ErrorKind, Modes, Operation};

checks! {
    "api.modes.available-without-comparisons": available_without_comparisons,
    "api.modes.nothing-instrumented": nothing_instrumented,
    "api.modes.kernel-without-kcov": kernel_without_kcov,
    "api.modes.kernel-without-kcov-names-the-option": kernel_without_kcov_names_the_option,
    "api.modes.no-file-system-for-it": no_file_system_for_it,
    "api.modes.no-permission": no_permission seconds(20),
}

fn available_without_comparisons(cx: &Context) {
    let modes = Modes::probe_path(cx.device()).expect("it works");
    assert!(modes.contains(TracePc) && !modes.contains(TraceCmp));
}

fn nothing_instrumented(cx: &Context) {
    let error = Modes::probe_path(cx.device()).expect_err("nothing is recorded");
    assert_eq!(error.kind(), ErrorKind::NotInstrumented);
    assert!(error.to_string().contains("no kernel code is instrumented"), "{error}");
}

fn kernel_without_kcov(cx: &Context) {
    assert_eq!(kind(Modes::probe_path(cx.device())), ErrorKind::NotBuiltIn);
    let error = Modes::probe().expect_err("there is no device");
    assert!(error.to_string().contains("this kernel has no kcov"), "{error}");
}

fn kernel_without_kcov_names_the_option(cx: &Context) {
    let error = Device::builder().path(cx.device()).open().expect_err("there is no device");
    assert_eq!((error.operation(), error.kind()), (Operation::Open, ErrorKind::NotBuiltIn));
    assert!(error.help().is_some_and(|help| help.contains("CONFIG_KCOV=y")), "{error}");
}

fn no_file_system_for_it(_: &Context) {
    assert_eq!(kind(Modes::probe_path("/proc/kcov")), ErrorKind::DebugfsNotMounted);
}

fn no_permission(cx: &Context) {
    let said: String = child(|| {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("another user");
        format!("{:?}", kind(Modes::probe_path(cx.device())))
    });
    assert_eq!(said, "PermissionDenied");
}
