//! Executing another program. That program is this one, with the command `helper`.

use super::*;
use std::process::Child;

/// Returns the helper as a command whose child enables the device before it executes. Neither the
/// child's file descriptor nor any mapping survives the exec.
pub(crate) fn traced_helper(device: &Device, mode: u32) -> Command {
    let device = device.duplicate().expect("a duplicate");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("helper");
    let enable = move || {
        let enabled = device.enable(mode);
        enabled.map_err(|errno| std::io::Error::from_raw_os_error(errno.0))
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(enable) };
    command
}

/// Starts a child that executes the helper, which then waits for a byte.
pub(crate) fn traced_program(device: &Device, mode: u32) -> Child {
    let mut command = traced_helper(device, mode);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a child");
    let said = child.stdout.as_mut().expect("its output").read_exact(&mut [0]);
    said.expect("the program says that it runs");
    child
}

fn go_on(mut child: Child) {
    child.stdin.take().expect("its input").write_all(b"!").expect("the program listens");
    assert!(child.wait().expect("its end").success());
}

/// Checks that tracing continues in a new program, whether or not its start filled the buffer.
pub(crate) fn goes_on_in_a_new_program(cx: &Context, mode: u32) {
    let (device, map) = mapped_of(cx, EXEC_WORDS);
    let child = traced_program(&device, mode);
    assert!(settled(&map) > 0, "the start of the new program is recorded");
    map.reset();
    go_on(child);
    assert!(map.count() > 0, "the new program adds nothing");
}

pub(crate) const CHECKS: &[Check] = &[
    check("exec.tracing-goes-on", |cx| goes_on_in_a_new_program(cx, KCOV_TRACE_PC)),
    on_buffer("exec.other-process-sees-the-records", mapped_exec, |_, device, map| {
        let child = traced_program(&device, KCOV_TRACE_PC);
        // The program is blocked and has no mapping of its own, but the words are still there.
        let before = settled(&map);
        assert!(before > 0);
        let records = map.copy(1, index(before));
        assert!(records.iter().all(|&word| word != 0), "all of its records are here");
        map.reset();
        go_on(child);
        assert!(map.count() > 0, "the new program records from word 1 again");
    }),
    on_buffer("exec.end-of-the-program-disables", mapped_exec, |_, device, map| {
        let child = traced_program(&device, KCOV_TRACE_PC);
        assert!(device.enable(KCOV_TRACE_PC).is_err(), "the program has it enabled");
        go_on(child);
        traces(&device, &map);
    }),
    on_buffer("exec.enabled-by-new-program-is-refused", mapped_exec, |cx, device, map| {
        let child = traced_program(&device, KCOV_TRACE_PC);
        assert!(settled(&map) > 0, "the program is traced");
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        go_on(child);
    }),
];
