//! The location of the kernel's code.

use crate::check::{Context, checks};
use crate::checks::api::{enable, open};
use crate::raw::{call, child, symbols};
use kcov::Arch;
use kcov_signal::{KernelText, KernelTextError};
use std::fs;

checks! {
    "api.kernel-text.records-lie-in-it": records_lie_in_it,
    "api.kernel-text.calls-lie-in-it": calls_lie_in_it,
    "api.kernel-text.hidden-from-other-users": hidden_from_other_users seconds(20),
    "api.kernel-text.hidden-from-everybody": hidden_from_everybody,
}

fn records_lie_in_it(cx: &Context) {
    let text = KernelText::read().expect("root may read it");
    assert_eq!(text.link_time(), symbols().text(), "as the suite finds it");
    let offset = text.kaslr_offset();
    assert_eq!(text.link_time().start.wrapping_add(offset), text.run_time().start);
    let mut device = open(cx, 1 << 16);
    let session = enable(&mut device);
    call();
    let recorded = session.disable().expect("disabled");
    let trace = recorded.trace();
    assert!(!trace.is_empty());
    for pc in trace.iter() {
        assert!(text.link_time().contains(&pc.address()), "{pc} is not in {text:x?}");
        let running = pc.run_time(offset).address();
        assert!(text.run_time().contains(&running), "{running:#x} is not in {text:x?}");
    }
}

/// The length of a call depends on the kernel, which may be User-Mode Linux: a program, in the lower
/// half of the addresses.
fn calls_lie_in_it(cx: &Context) {
    let (text, symbols) = (symbols().text(), symbols());
    let running = Arch::running().expect("an architecture that the library knows");
    let is_program = Arch::HOST == Some(Arch::X86_64) && text.end >> 63 == 0;
    assert_eq!(running, if is_program { Arch::Um64 } else { Arch::HOST.expect("known") });
    let mut device = open(cx, 1 << 16);
    let session = enable(&mut device);
    call();
    let recorded = session.disable().expect("disabled");
    assert!(!recorded.trace().is_empty());
    for pc in recorded.trace().iter() {
        let site = pc.call_site(running).address();
        assert!(text.contains(&site), "{pc}: {site:#x} is not in {text:x?}");
        // `names` takes the address after the call.
        assert_eq!(symbols.names(site + 1), symbols.names(pc.address()), "{pc}: {site:#x}");
    }
}

fn hidden_from_other_users(_: &Context) {
    let said: String = child(|| {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("another user");
        KernelText::read().expect_err("not for everybody").to_string()
    });
    assert_eq!(said, KernelTextError::Hidden.to_string());
}

/// Restores the setting when dropped, even if the check fails.
struct Setting(String);

const RESTRICT: &str = "/proc/sys/kernel/kptr_restrict";

impl Drop for Setting {
    fn drop(&mut self) {
        fs::write(RESTRICT, &self.0).expect("the old setting");
    }
}

fn hidden_from_everybody(_: &Context) {
    let before = Setting(fs::read_to_string(RESTRICT).expect("the setting"));
    fs::write(RESTRICT, "2").expect("root may set it");
    let error = KernelText::read().expect_err("nobody may see them");
    assert!(matches!(error, KernelTextError::Hidden), "{error}");
    assert!(error.to_string().contains("kptr_restrict"), "{error}");
    drop(before);
    assert!(KernelText::read().is_ok(), "as before");
}
