//! Complete and broken results.

use super::*;

fn judge(text: &str, status: i32) -> Result<Vec<Check>, String> {
    let mut reader = Reader::default();
    reader.feed(text.as_bytes());
    reader.finish(Exit::Status(status))
}

#[track_caller]
fn refused(text: &str, status: i32, why: &str) {
    let message = judge(text, status).expect_err("must not be a verdict");
    assert!(message.contains(why), "{message}");
}

#[test]
fn whole_results_are_a_verdict() {
    let text = "KTAP version 1\n1..3\n# why\nnot ok 1 a.b\nok 2 - c # SKIP no net\nok 3 d # 3 ms";
    let checks = judge(text, 1).expect("whole");
    assert_eq!(Counts::of(&checks), Counts { passed: 1, failed: 1, skipped: 1 });
    assert_eq!(checks[0].diagnostics, ["why"]);
    assert_eq!(checks[1].outcome, Outcome::Skip { reason: "no net".into() });
    assert_eq!(checks[2].id, "d");
    assert!(judge("1..1\nok 1 a\n", 0).is_ok());
}

#[test]
fn the_plan_is_kept() {
    refused("1..3\nok 1 a\n", 0, "results 2 to 3 of 3 are missing");
    refused("1..2\nok 1 a\n", 0, "result 2 of 2 is missing");
    refused("1..1\nok 1 a\nok 1 a\n", 0, "result 1 (a) came twice");
    refused("1..2\nok 2 b\nok 1 a\n", 0, "result 2 (b) came where 1 was due");
    refused("1..1\nok 1 a\nok 2 b\n", 0, "result 2 (b) is not in the plan");
    refused("1..2\nok 1 a\nok 2 a\n", 0, "two results have the id a");
    refused("ok 1 a\n", 0, "before the plan");
    refused("ok 1 a\n1..1\n", 0, "before the plan");
    refused("1..1\n1..1\nok 1 a\n", 0, "a second plan");
    refused("1..x\nok 1 a\n", 0, "cannot read the plan");
    refused("hello\n", 0, "there is no plan");
    refused("", 101, "there is no plan; the program exited with status 101");
}

#[test]
fn other_ends_and_lines_are_refused() {
    refused("1..2\nok 1 a\nBail out! no /dev/kcov\n", 1, "bailed out: no /dev/kcov");
    refused("1..1\nok 1 a\n", 1, "but 0 of 1 checks failed");
    refused("1..1\nnot ok 1 a\n", 0, "but 1 of 1 checks failed");
    refused("1..1\nok 1 a\n", 101, "status 101");
    refused("1..1\nok a\n", 0, "no number");
    refused("1..1\nok 1\n", 0, "no id");
    refused("1..1\nok 1 # SKIP x\n", 0, "no id");
    let mut reader = Reader::default();
    reader.feed(b"1..1\nok 1 a\n");
    assert!(reader.finish(Exit::Signal(9)).is_err_and(|why| why.contains("signal 9")));
}

#[test]
fn skips_need_a_reason() {
    refused("1..1\nok 1 a # SKIP\n", 0, "skipped without a reason");
    refused("1..1\nnot ok 1 a # SKIP x\n", 1, "`not ok` and skipped");
    let checks = judge("1..1\nok 1 a # Skipped later\n", 0).expect("another word");
    assert_eq!(checks[0].outcome, Outcome::Pass);
}

#[test]
fn lines_inside_diagnostics_are_not_results() {
    let text = "1..2\n# ok 1 a\n# Bail out! x\n  ok 1 a\n#1..9\nnot ok 1 a\nok 2 b\n";
    let checks = judge(text, 1).expect("whole");
    assert_eq!(checks[0].outcome, Outcome::Fail);
    assert_eq!(checks[0].diagnostics, ["ok 1 a", "Bail out! x", "  ok 1 a", "1..9"]);
}

#[test]
fn results_of_no_check_are_told_apart() {
    let why = |text: &str, status| none_ran(&judge(text, status).expect("whole"));
    let empty = "no check ran: the plan is empty";
    let one = "1..1\nok 1 a # SKIP no net\n";
    let two = "1..2\nok 1 a # SKIP no net\nok 2 b # SKIP no disc\n";
    // With or without an explanation from the program.
    for status in [0, 69] {
        assert_eq!(why("1..0\n", status).as_deref(), Some(empty));
        let said = "no check ran: a is skipped, as no net";
        assert_eq!(why(one, status).as_deref(), Some(said));
        let said = "no check ran: a is skipped, as no net, and so are 1 more";
        assert_eq!(why(two, status).as_deref(), Some(said));
    }
    assert_eq!(why("1..2\nok 1 a # SKIP x\nok 2 b\n", 0), None);
    assert_eq!(why("1..2\nnot ok 1 a\nok 2 b # SKIP x\n", 1), None);
    refused("1..1\nok 1 a\n", 69, "status 69, but 0 of 1 checks failed");
    refused("1..1\nok 1 a # SKIP x\n", 1, "but 0 of 1 checks failed");
}
