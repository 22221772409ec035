use super::*;
use crate::error::STATUS_UNAVAILABLE;

const LIMITS: Limits = Limits {
    boot: Duration::from_secs(5),
    program: Duration::from_secs(9),
    silent: Some(Duration::from_secs(3)),
    idle: Some(Duration::from_secs(4)),
    ends_at_complaint: false,
};

const WARNING: [&str; 2] =
    ["WARNING: a.c:1 at f+0x1/0x2, CPU#0: p/18", "CPU: 0 UID: 0 PID: 18 Comm: p Not tainted 7.3"];

fn expect() -> Expect {
    let system = System::Linux;
    Expect {
        system,
        release: "7.".into(),
        machine: "x86_64".into(),
        build: Some("-kcov-aa".into()),
    }
}

fn boot(release: &str) -> Frame {
    Frame::Boot { release: release.into(), machine: "x86_64".into() }
}

fn run(frames: &[Frame], console: &[&str], ending: Ending) -> Result<Finished, String> {
    let (expect, now) = (expect(), Instant::now());
    let mut watch = Watch::new("n", LIMITS, &expect, now);
    for frame in frames {
        watch.channel(frame.encode("n").as_bytes(), &mut (), now);
    }
    for line in console {
        watch.console(line, now);
    }
    watch.finish(ending).map_err(|why| why.to_string())
}

fn good() -> Vec<Frame> {
    vec![boot("7.3.4-kcov-aa"), Frame::Start, Frame::Exit(Exit::Status(3)), Frame::End]
}

fn gone() -> Ending {
    Ending::Gone("exit status 0".into())
}

#[test]
fn a_whole_run_counts_however_the_guest_ends() {
    for ending in [gone(), Ending::Stopped] {
        let finished = run(&good(), &["reboot: Power down"], ending).expect("whole");
        assert_eq!(finished.exit, Some(Exit::Status(3)));
        assert_eq!(finished.release, "7.3.4-kcov-aa");
    }
    // A program that was not run has not ended.
    let finished = run(&[boot("7.3.4-kcov-aa"), Frame::End], &[], gone()).expect("whole");
    assert_eq!(finished.exit, None);
    assert_eq!(finished.ended().expect_err("no verdict").status(), STATUS_UNAVAILABLE);
}

#[test]
fn a_warning_spoils_a_whole_run() {
    let [first, second] = WARNING;
    let panic = "Kernel panic - not syncing: x";
    let why =
        run(&good(), &[first, second, "f", "[ cut here ]", panic], Ending::Gone("signal 6".into()));
    let why = why.expect_err("spoilt");
    assert!(why.starts_with(&format!("end: the kernel warned: `{first}`\n    {first}\n")), "{why}");
    assert!(why.contains("later: the kernel panicked"), "{why}");
}

#[test]
fn a_guest_that_goes_on_has_not_panicked() {
    let (expect, now) = (expect(), Instant::now());
    let mut watch = Watch::new("n", LIMITS, &expect, now);
    watch.channel(good()[0].encode("n").as_bytes(), &mut (), now);
    watch.console("Kernel panic - not syncing: x", now);
    assert_eq!(watch.deadline(), now + AFTER_DOUBT);
    watch.channel(good()[1].encode("n").as_bytes(), &mut (), now + 2 * LIFE);
    assert_eq!(watch.deadline(), now + LIMITS.program);
    let why = watch.finish(Ending::Stopped).expect_err("hung").to_string();
    assert!(why.starts_with("program: the program hung: "), "{why}");
}

#[test]
fn a_panic_that_is_read_before_the_report_of_init_came_after_it() {
    let (expect, now) = (expect(), Instant::now());
    let phase = |lines: &[&str], frames: usize| {
        let mut watch = Watch::new("n", LIMITS, &expect, now);
        lines.iter().for_each(|line| watch.console(line, now));
        for frame in &good()[..frames] {
            watch.channel(frame.encode("n").as_bytes(), &mut (), now);
        }
        watch.finish(gone()).expect_err("spoilt").phase
    };
    assert_eq!(phase(&["Kernel panic - not syncing: x"], 0), Phase::Boot);
    assert_eq!(phase(&["Kernel panic - not syncing: x"], 2), Phase::Program);
    assert_eq!(phase(&WARNING, 2), Phase::Boot);
    let started = [&["Run /init as init process"], &WARNING[..]].concat();
    assert_eq!(phase(&started, 0), Phase::Boot);
    assert_eq!(phase(&started, 2), Phase::Program);
}

#[test]
fn each_way_to_stop_short_has_its_words() {
    for (frames, ending, words) in [
        (0, Ending::Stopped, "boot: the guest did not boot within 5 s"),
        (0, gone(), "boot: the guest did not boot: exit status 0 before init"),
        (2, Ending::Stopped, "program: the program hung: it did not end within 9 s"),
        (2, gone(), "program: the guest went down before the program ended"),
        (3, Ending::Stopped, "end: the guest hung after"),
        (3, gone(), "end: the guest went down before its last frame"),
    ] {
        let why = run(&good()[..frames], &[], ending).expect_err("short");
        assert!(why.starts_with(words), "{why}");
    }
}

#[test]
fn the_kernel_must_be_the_declared_one() {
    for (release, words) in [("6.1.0-kcov-aa", "begin with `7.`"), ("7.3.4-kcov-bb", "`-kcov-aa`")]
    {
        let why = run(&[boot(release)], &[], gone()).expect_err("another kernel");
        assert!(why.starts_with("boot: the kernel is not the declared one"), "{why}");
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn after_the_last_word_netbsd_is_ended_at_once() {
    let (expect, now) = (Expect { system: System::NetBsd, ..expect() }, Instant::now());
    let mut watch = Watch::new("n", LIMITS, &expect, now);
    for frame in good() {
        watch.console("WARNING: no TOD clock present", now);
        watch.channel(frame.encode("n").as_bytes(), &mut (), now);
    }
    watch.console("panic: detach", now);
    assert_eq!(watch.deadline(), now);
    assert!(watch.finish(Ending::Stopped).is_ok());

    let mut watch = Watch::new("n", LIMITS, &expect, now);
    watch.console("panic: trap", now);
    let why = watch.finish(Ending::Stopped).expect_err("spoilt").to_string();
    assert_eq!(why, "boot: the kernel panicked: `panic: trap`");
}

#[test]
fn trouble_shortens_the_wait() {
    let (expect, now) = (expect(), Instant::now());
    let mut watch = Watch::new("n", LIMITS, &expect, now);
    WARNING.iter().for_each(|line| watch.console(line, now));
    assert_eq!(watch.deadline(), now + LIMITS.boot);
    watch.console("Pid: 1, comm: init Not tainted 7.3", now);
    watch.console("Kernel panic - not syncing: x", now);
    assert_eq!(watch.deadline(), now + AFTER_PANIC);

    let limits = Limits { ends_at_complaint: true, ..LIMITS };
    let mut watch = Watch::new("n", limits, &expect, now);
    WARNING.iter().for_each(|line| watch.console(line, now));
    assert_eq!(watch.deadline(), now + AFTER_COMPLAINT);
}

#[test]
fn a_guest_that_does_not_work_and_does_not_wait_is_blocked() {
    let (expect, now) = (expect(), Instant::now());
    let at = |seconds| now + Duration::from_secs(seconds);
    let limits = Limits { program: Duration::from_secs(99), ..LIMITS };
    // All the time it waits for a processor, or never.
    for (rate, is_blocked) in [(1, false), (0, true)] {
        let mut watch = Watch::new("n", limits, &expect, now);
        watch.channel(boot("7.3.4-kcov-aa").encode("n").as_bytes(), &mut (), now);
        for seconds in 1..12 {
            watch.used(Duration::ZERO, || Duration::from_secs(rate * seconds), at(seconds));
        }
        assert_eq!(watch.deadline() <= at(11), is_blocked);
        let why = watch.finish(Ending::Stopped).expect_err("stopped").to_string();
        assert_eq!(why.starts_with("program: the guest is blocked: for 4 s "), is_blocked, "{why}");
    }
}

#[test]
fn a_guest_has_more_time_if_it_waits_for_a_processor() {
    let (expect, now) = (expect(), Instant::now());
    let late = now + LIMITS.boot;
    let mut watch = Watch::new("n", LIMITS, &expect, now);
    assert!(!watch.excuse(Duration::ZERO, late));
    assert!(watch.excuse(Duration::from_secs(3), late));
    assert_eq!(watch.deadline(), late + Duration::from_secs(3));
    watch.channel(boot("7.3.4-kcov-aa").encode("n").as_bytes(), &mut (), late);
    let late = late + LIMITS.program;
    assert!(watch.excuse(Duration::from_secs(3), late));
    assert_eq!(watch.deadline(), late + Duration::from_secs(3));
    // Not after a panic.
    watch.console("Kernel panic - not syncing: x", late);
    assert!(!watch.excuse(Duration::from_secs(3), late));
}

#[test]
fn a_guest_that_works_without_a_word_hangs() {
    let (expect, now) = (expect(), Instant::now());
    let mut watch = Watch::new("n", LIMITS, &expect, now);
    watch.used(Duration::from_secs(3), || Duration::ZERO, now);
    watch.channel(boot("7.3.4-kcov-aa").encode("n").as_bytes(), &mut (), now);
    watch.used(Duration::from_secs(6), || Duration::ZERO, now);
    assert_eq!(watch.deadline(), now + LIMITS.program);
    watch.used(Duration::from_millis(6010), || Duration::ZERO, now);
    assert_eq!(watch.deadline(), now);
    let why = watch.finish(Ending::Stopped).expect_err("hung").to_string();
    assert!(why.starts_with("program: the guest hung: it used 3 s of processor time"), "{why}");
}
