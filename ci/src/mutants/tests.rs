use super::campaign::in_tree;
use super::counts::Counts;
use super::known::Known;
use super::library::Library;
use super::lockstep::Score;
use super::mutant::all;
use super::page;
use super::plain;
use super::record::{Entry, Lockstep, Outcome, Record};
use super::run::{matched, revision};
use super::subject::{Plan, Remark, Subject};
use crate::suite::{self, workspace};
use kcov_vm::target::Targets;

const TEXT: &str = "\
#define X 1
static notrace int f(struct s *s, int a)
\t__must_hold(&s->lock)
{
\tif (!a || s->n >= 2)
\t\treturn -EINVAL;
\ts->a = a;
\ts->b = 0;
\tguarded(
\t\tput(s, a);
\t);
#ifdef CONFIG_OFF
\tgone();
#else
\tthere();
#endif
\treturn 0;
}
int g(void)
{
\treturn 5;
}
";

fn subject() -> Subject {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    Subject {
        title: "Mutants".into(),
        named: "kernel".into(),
        file: "kernel/f.c".into(),
        functions: words(&["f"]),
        others: words(&["g"]),
        errnos: words(&["EINVAL", "EBUSY"]),
        attributes: words(&["notrace", "__must_hold"]),
        wrappers: words(&["guarded"]),
        lockstep: Plan { operations: 3, targets: words(&["t"]) },
        equivalent: vec![Remark { because: "nobody looks".into(), ids: words(&["f: x"]) }],
        ..Subject::default()
    }
}

#[test]
fn every_operator_has_its_places() {
    let mutants = all(TEXT, "CONFIG_ON=y\n", &subject()).expect("parsed");
    let ids: Vec<_> = mutants.iter().map(|mutant| mutant.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "f: negate: !a || s->n >= 2 => !(!a || s->n >= 2)",
            "f: boundary: s->n >= 2 => s->n > 2",
            "f: constant: 2 => 3",
            "f: delete: return -EINVAL;",
            "f: errno: -EINVAL => -EBUSY",
            "f: delete: s->a = a;",
            "f: stores: s->a = a; s->b = 0; => s->a = 0; s->b = a;",
            "f: delete: s->b = 0;",
            "f: constant: 0 => 1",
            "f: arguments: put(s, a) => put(a, s)",
            "f: delete: put(s, a);",
            "f: delete: there();",
            "f: constant: 0 => 1 (2)",
        ]
    );
    let lines = |text: &str| text.matches('\n').count();
    for mutant in &mutants {
        let altered = mutant.apply(TEXT);
        assert_ne!(altered, TEXT, "{}", mutant.id);
        assert_eq!(lines(&altered), lines(TEXT), "{}", mutant.id);
    }
    let applied = mutants[4].apply(TEXT);
    assert_eq!(applied, TEXT.replace("-EINVAL", "-EBUSY"));
}

/// NetBSD's functions return positive error numbers, and some names are defined.
#[test]
fn errors_without_a_sign_are_replaced() {
    let text = "int f(int a)\n{\n#ifdef DIAGNOSTIC\n\tcheck();\n#endif\n\tif (rare(a == 1))\n\t\treturn EBUSY;\n\treturn a;\n}\n";
    let mut subject = subject();
    subject.others.clear();
    subject.defined = vec!["DIAGNOSTIC".into()];
    subject.wrappers = vec!["rare".into()];
    let mutants = all(text, "", &subject).expect("parsed");
    let ids: Vec<_> = mutants.iter().map(|mutant| mutant.id.as_str()).collect();
    let expected = [
        "f: delete: check();",
        "f: relation: a == 1 => a != 1",
        "f: constant: 1 => 2",
        "f: delete: return EBUSY;",
        "f: errno: EBUSY => EINVAL",
    ];
    assert_eq!(ids, expected);
    assert!(mutants[1].apply(text).contains("if (rare(a != 1))"));
}

#[test]
fn netbsds_files_name_their_revision() {
    let text = "/*\t$NetBSD: f.c,v 1.2 2022/10/26 23:24:21 who Exp $\t*/\nint f;\n";
    assert_eq!(revision(text), "NetBSD, revision 1.2 of 2022-10-26");
    assert_eq!(revision("int f;\n"), "NetBSD");
}

#[test]
fn plain_text_keeps_its_places() {
    let text = plain::plain(TEXT, "CONFIG_OFF=y\n", &subject());
    assert_eq!(text.len(), TEXT.len());
    assert!(text.contains("gone()") && !text.contains("there()"));
    assert!(!text.contains("notrace") && !text.contains("lock") && !text.contains("guarded"));
    assert_eq!(text.find("put(s, a)"), TEXT.find("put(s, a)"));
}

#[test]
fn functions_are_all_known() {
    let mut other = subject();
    other.others.clear();
    assert!(all(TEXT, "", &other).expect_err("g is new").contains("`g`"));
    other.others = vec!["g".into()];
    other.functions.push("h".into());
    assert!(all(TEXT, "", &other).expect_err("h is gone").contains("`h`"));
}

fn entry(id: &str, outcome: Outcome) -> Entry {
    let (on, digest) = ("t".into(), String::new());
    Entry { id: id.into(), place: "f".into(), line: 1, on, digest, outcome, lockstep: None }
}

fn known() -> Known {
    let (kernel, library) = Default::default();
    Known { subject: subject(), kernel, library }
}

/// One of each, and one with a proof of equivalence.
fn record() -> Record {
    let mut record = Record { all: 7, suite: "s".into(), whole: true, ..Record::default() };
    record.skip(vec!["a.c".into()]);
    let red = record.places(&["a.a".into(), "a.b".into()])[..1].to_vec();
    let why = || String::from("no");
    record.mutants = vec![
        entry("f: a", Outcome::Killed { red, unseen: 0 }),
        entry("f: b", Outcome::Ended { why: why(), during: Vec::new() }),
        entry("f: c", Outcome::SameCode),
        entry("f: d", Outcome::Invalid { why: why() }),
        entry("f: e", Outcome::Undetected),
        entry("f: x", Outcome::Undetected),
    ];
    record
}

#[test]
fn six_numbers_add_up() {
    let (mut record, known) = (record(), known());
    let counts = Counts::of(record.mutants.iter(), &known);
    assert_eq!(counts.numbers(), [1; 6]);
    assert!(counts.score().contains("notices 1 of the 3 "), "{}", counts.score());
    let text = page::text(&record, &known, "s");
    assert!(text.contains("UNDETECTED f: e") && !text.contains("UNDETECTED f: x"), "{text}");
    assert_eq!(page::contradictions(&record, &known), [""; 0]);
    // A detected mutant is not equivalent.
    record.mutants[5].outcome = Outcome::Ended { why: "no".into(), during: vec![1] };
    assert_eq!(page::contradictions(&record, &known), ["NOT EQUIVALENT f: x"]);
}

/// It counts what the six numbers call other code.
#[test]
fn lockstep_has_a_score_of_its_own() {
    let (mut record, known) = (record(), known());
    record.operations = 3;
    let score = |record: &Record| Score::of(record.mutants.iter(), &known);
    assert_eq!(score(&record).cell(), "not run");
    assert!(page::render(&record, &known, "s").contains("Lockstep was not run."));
    for (place, seen) in [
        (0, Lockstep::Agreed),
        (1, Lockstep::Ended("no".into())),
        (4, Lockstep::Parted),
        (5, Lockstep::Agreed),
    ] {
        record.mutants[place].lockstep = Some(seen);
    }
    let counted = Score { ran: 3, noticed: 2, killed: 1, both: 0, not_run: 0 };
    assert_eq!(score(&record), counted);
    let text = page::render(&record, &known, "s");
    for words in [
        "3 operations of seed 1. It notices 2 of 3 mutants",
        "66.7 %), and 0 of the 1 that a check",
        "It notices 0 of 0 named",
        "| `f` | 1 | 1 | 1 | 1 | 1 | 1 | 2 of 3 |",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let again: Record = serde_json::from_str(&record.to_json()).expect("what was written");
    assert_eq!(again.mutants, record.mutants);
    assert_eq!(page::contradictions(&record, &known), [""; 0]);
    record.mutants[5].lockstep = Some(Lockstep::Parted);
    assert_eq!(page::contradictions(&record, &known), ["NOT EQUIVALENT f: x"]);
    // A mutant without a result does not count as missed.
    record.mutants[4].lockstep = None;
    let counted = Score { ran: 2, noticed: 1, killed: 1, both: 0, not_run: 1 };
    assert_eq!(score(&record), counted);
    assert!(page::text(&record, &known, "s").contains(" Not run: 1."));
}

#[test]
fn a_run_that_ends_early_is_another_campaign() {
    let mut early = Record { suite: "s".into(), ..Record::default() };
    assert!(!early.resume(record()), "the record is of whole runs");
    let page = page::render(&Record { whole: false, ..record() }, &known(), "s");
    assert!(page.contains("each until a check was red."), "{page}");
    assert!(!page.contains("--whole") && !page.contains("## Checks"), "{page}");
}

#[test]
fn other_operations_are_another_campaign() {
    let mut new = Record { suite: "s".into(), operations: 3, whole: true, ..Record::default() };
    assert!(!new.resume(record()), "the record was made without lockstep");
}

#[test]
fn a_check_that_never_failed_is_named() {
    let page = page::render(&record(), &known(), "s");
    for line in [
        "| `a.a` | `f: a` | 0 |",
        "| `a.b` | never seen to fail | 0 |",
        "| `a.c` | never seen to fail: not run | 0 |",
        "1 of 2 checks have been seen to fail, 1 of them with",
        "1 of 7 mutants have not been tried yet",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

#[test]
fn a_check_that_the_kernel_ended_is_named() {
    let mut record = record();
    record.mutants[1].outcome = Outcome::Ended { why: "no".into(), during: vec![1] };
    let page = page::render(&record, &known(), "s");
    assert!(page.contains("| `a.b` | the kernel ended it: `f: b` | 0 |"), "{page}");
}

#[test]
fn checks_that_were_red_most_often_come_first() {
    let mut record = record();
    let ids = ["a.a", "a.b", "a.d", "a.e"].map(String::from);
    assert_eq!(record.killers(&ids, 9), ["a.a"]);
    let red = record.places(&ids[1..3]);
    record.mutants.push(entry("f: y", Outcome::Killed { red: red.clone(), unseen: 0 }));
    record.named.push(entry("z", Outcome::Killed { red: red[1..].to_vec(), unseen: 0 }));
    assert_eq!(record.killers(&ids, 9), ["a.d", "a.a", "a.b"]);
    assert_eq!(record.killers(&ids[..2], 9), ["a.a", "a.b"]);
    assert_eq!(record.killers(&ids, 1), ["a.d"]);
}

#[test]
fn results_are_of_one_suite() {
    let earlier = record();
    assert!(page::render(&earlier, &known(), "other").contains("These results are old"));
    let again: Record = serde_json::from_str(&earlier.to_json()).expect("what was written");
    assert_eq!(again.mutants, earlier.mutants);
    let mut new = Record { suite: "s".into(), whole: true, ..Record::default() };
    assert!(new.resume(again.clone()) && new.mutants == earlier.mutants);
    let mut new = Record { suite: "other".into(), ..Record::default() };
    assert!(!new.resume(again) && new.mutants.is_empty());
}

#[test]
fn only_undetected_mutants_run_again() {
    let mut record = record();
    record.forget_undetected(|id| id != "f: x");
    let left: Vec<&str> = record.mutants.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(left, ["f: a", "f: b", "f: c", "f: d", "f: x"]);
}

#[test]
fn messages_do_not_name_the_tree() {
    let message = "assertion \"a == b\" failed: file \"/home/me/src/sys/uvm/uvm_page.c\", line 9";
    let cut = "assertion \"a == b\" failed: file \"sys/uvm/uvm_page.c\", line 9";
    assert_eq!(in_tree(message, "sys/kern/subr_kcov.c"), cut);
    assert_eq!(in_tree(message, "kernel/kcov.c"), message, "it is not of this tree");
}

#[test]
fn words_in_no_name_are_an_error() {
    let only = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        matched(&words, ["a count is lost", "f: delete: a();"].into_iter())
    };
    assert!(only(&[]).is_ok() && only(&["is lost"]).is_ok() && only(&["is lost", "f:"]).is_ok());
    let error = only(&["is lost", "is found"]).expect_err("one is in no name");
    assert_eq!(error.status(), 2);
    assert!(format!("{error:?}").contains("`is found`"), "{error:?}");
}

/// The data, and the current files that it describes.
fn data() -> Known {
    data_of("kcov.toml")
}

fn data_of(name: &str) -> Known {
    Known::load(&suite::data().join("mutants"), name).expect("the data")
}

#[test]
fn netbsds_data_can_be_read() {
    let known = data_of("netbsd.toml");
    assert!(known.library.is_empty() && known.kernel.values().flatten().count() > 0);
    for named in known.kernel.values().flatten() {
        assert_ne!(named.find, named.with, "{}", named.name);
        assert!(!named.red.is_empty(), "{}: name the checks that notice it", named.name);
    }
    for remark in known.subject.equivalent.iter().chain(&known.subject.undetected) {
        assert!(remark.ids.iter().all(|id| id.contains(": ")), "{:?}", remark.ids);
    }
}

#[test]
fn what_is_judged_elsewhere_is_judged_on_a_target() {
    let targets = Targets::load(&workspace().join("ci/vm/data/targets.toml"));
    let targets = targets.expect("the targets");
    let known = data();
    let Subject { elsewhere, lockstep, .. } = &known.subject;
    assert!(!elsewhere.is_empty() && lockstep.operations > 0);
    assert!(lockstep.targets.iter().all(|name| targets.named(name).is_ok()));
    for elsewhere in elsewhere {
        assert!(targets.named(&elsewhere.target).is_ok(), "{}", elsewhere.target);
        assert!(!elsewhere.checks.is_empty() && !elsewhere.words.is_empty());
    }
}

#[test]
fn alterations_of_the_library_can_be_made() {
    let claims = ["api.toml", "api-linux.toml"].map(|name| {
        std::fs::read_to_string(workspace().join("conformance/claims").join(name)).expect("claims")
    });
    let mut names = Vec::new();
    for named in data().library.values().flatten() {
        let text = Library::original(&named.file).expect("the file");
        let altered = named.mutant(&text).map(|mutant| mutant.apply(&text));
        assert_ne!(altered.unwrap_or_else(|error| panic!("{error}")), text, "{}", named.name);
        assert!(!names.contains(&named.name) && !named.red.is_empty(), "{}", named.name);
        names.push(named.name.clone());
        for id in &named.red {
            let known = claims.iter().any(|text| text.contains(&format!("id = \"{id}\"")));
            assert!(known, "{}: there is no {id}", named.name);
        }
    }
    assert!(!names.is_empty());
}

/// The page matches the record and the data. It may state either age.
#[test]
fn the_page_is_not_stale() {
    let base = suite::data();
    for (target, data) in [("linux-uml", "kcov.toml"), ("netbsd", "netbsd.toml")] {
        let (known, report) = (data_of(data), base.join(format!("mutants/{target}.json")));
        let page = workspace().join(&known.subject.page);
        // NetBSD's report needs a user's tree.
        if target == "netbsd" && !report.exists() && !page.exists() {
            continue;
        }
        let record = Record::read(&report).expect("the record");
        let text = std::fs::read_to_string(&page).expect("the page");
        let same = [record.suite.as_str(), ""]
            .iter()
            .any(|suite| text == page::render(&record, &known, suite));
        assert!(
            same,
            "run `cargo vm mutants {target} --no-run --report {} --page {}`",
            report.display(),
            page.display()
        );
    }
}
